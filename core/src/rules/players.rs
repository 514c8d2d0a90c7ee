//! Whether a model judged its own work: a model that reviews what it wrote itself sees its own blind spots least.

use crate::run::Author;

use super::ledger;

/// Whether the same model wrote and judged. Where one of them does not report its name, the same program counts as the
/// same model. A play file is no model at all.
pub fn same_model(author: &Author, judge: &Author) -> bool {
    if ledger::is_free(&author.agent) || ledger::is_free(&judge.agent) || judge.agent.is_empty() {
        return false;
    }
    match (model(author), model(judge)) {
        (Some(one), Some(other)) => one == other,
        (None, _) | (_, None) => author.agent == judge.agent,
    }
}

fn model(author: &Author) -> Option<&str> {
    author.player.as_ref().map(|player| player.model.as_str()).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::same_model;
    use crate::event::Player;
    use crate::run::Author;

    fn by(agent: &str, model: &str) -> Author {
        let player = Player { model: model.to_owned(), ..Player::default() };
        Author { agent: agent.to_owned(), player: (!model.is_empty()).then_some(player) }
    }

    #[test]
    fn issue_4_5_a_review_by_the_model_that_wrote_it_is_marked() {
        for (author, judge, same) in [
            (by("claude", "opus-5"), by("claude", "opus-5"), true),
            (by("claude", "opus-5"), by("claude", "sonnet-5"), false),
            (by("claude", "opus-5"), by("acp:x", "opus-5"), true),
            (by("claude", ""), by("claude", "opus-5"), true),
            (by("claude", ""), by("codex", "gpt-6"), false),
            (by("cmd:a", ""), by("cmd:a", ""), true),
            (by("cmd:a", ""), by("cmd:b", ""), false),
            (by("script:a.play", ""), by("script:a.play", ""), false),
            (by("claude", "opus-5"), by("", ""), false),
        ] {
            assert_eq!(same_model(&author, &judge), same, "{author:?} {judge:?}");
        }
    }
}
