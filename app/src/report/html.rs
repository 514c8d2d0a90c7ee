//! The report as one HTML file: no script, no request, no style but its own. The policy in its head says so, too, and
//! a browser holds it to that whatever an agent wrote.

use std::fmt::Write;

use archeflow_core::model::Severity;
use archeflow_core::projections::story::{Choice, Cost, Life, State, Story};
use archeflow_core::view::{self, Tone, capital};

use super::diff::{FileDiff, Kind};
use super::markdown::split;
use super::{Report, blocks, graph, most, svg, words};
use archeflow_core::text::{html, revealed, short_line, short_text};

const STYLE: &str = include_str!("style.css");

pub(crate) fn draw(report: &Report<'_>) -> String {
    let story = report.story;
    let mut body = String::new();
    header(&mut body, report);
    if let Some(page) = &story.page {
        broke(&mut body, page);
    } else if story.tone() != Tone::Good && !story.next.is_empty() {
        next(&mut body, story);
    }
    section(
        &mut body,
        "cycles",
        "The cycles",
        &format!("<figure class=\"wide\">{}</figure>", svg::cycles(story)),
    );
    section(&mut body, "findings", "The findings", &findings(story));
    if let Some(plot) = svg::convergence(story) {
        section(&mut body, "convergence", "Convergence", &convergence(story, &plot));
    }
    section(&mut body, "cost", "Cost by archetype", &costs(story));
    corrections(&mut body, story);
    questions(&mut body, story);
    section(&mut body, "decisions", "Decisions and their reasons", &decisions(story));
    section(&mut body, "change", "The change", &change(report));
    section(&mut body, "artifacts", "Artifacts", &artifacts(story));
    if let Some(dag) = report.dag {
        let tree = html(&graph::plain(dag));
        section(&mut body, "events", "Events", &format!("<pre class=\"tree\">{tree}</pre>"));
    }
    page(story, &body)
}

fn page(story: &Story, body: &str) -> String {
    let policy = format!(
        "default-src &#39;none&#39;; style-src &#39;{}&#39;; base-uri &#39;none&#39;; form-action &#39;none&#39;",
        archeflow_core::digest::source(STYLE)
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}: {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{SHAPES}\n<main>\n{body}\n\
         <footer>Made from the journal of <code>{}</code>, {} lines, by archeflow {}. Every fact above follows from it; \
         <span class=\"seq\">#n</span> is a line of it.</footer>\n</main>\n</body>\n</html>\n",
        story.status(),
        line(&story.overview.task, 120),
        line(&story.run_id, 200),
        story.overview.events,
        line(&story.overview.version, 40)
    )
}

/// The dots of the findings, drawn once and used by name. Shapes differ as well as colours.
const SHAPES: &str = "<svg class=\"shapes\" aria-hidden=\"true\"><defs>\
<symbol id=\"new\" viewBox=\"-8 -8 16 16\"><circle class=\"s-new\" r=\"5.5\"/></symbol>\
<symbol id=\"persistent\" viewBox=\"-8 -8 16 16\"><circle class=\"s-persistent-ring\" r=\"5.5\"/><circle class=\"s-persistent\" r=\"2.6\"/></symbol>\
<symbol id=\"resolved\" viewBox=\"-8 -8 16 16\"><path class=\"s-resolved\" d=\"M-4.5 0.5l3 3l6 -7\"/></symbol>\
<symbol id=\"regressed\" viewBox=\"-8 -8 16 16\"><path class=\"s-regressed\" d=\"M0 -5.5l5.6 10h-11.2z\"/></symbol>\
<symbol id=\"oscillating\" viewBox=\"-8 -8 16 16\"><path class=\"s-oscillating\" d=\"M0 -6.2l6.2 6.2l-6.2 6.2l-6.2 -6.2z\"/></symbol>\
<symbol id=\"accepted\" viewBox=\"-8 -8 16 16\"><path class=\"s-accepted\" d=\"M-4.5 -2.2h9M-4.5 2.2h9\"/></symbol>\
<symbol id=\"absent\" viewBox=\"-8 -8 16 16\"><circle class=\"s-absent\" r=\"1.3\"/></symbol>\
</defs></svg>";

fn section(out: &mut String, id: &str, title: &str, inner: &str) {
    let _ = writeln!(out, "<section id=\"{id}\"><h2>{title}</h2>{inner}</section>");
}

fn header(out: &mut String, report: &Report<'_>) {
    let story = report.story;
    let overview = &story.overview;
    let detail = overview.outcome.as_ref().map_or("It has not ended.", |outcome| &outcome.detail);
    let _ = write!(
        out,
        "<header><p class=\"eyebrow\">ArcheFlow run <span class=\"t\">{}</span></p><h1 class=\"t\">{}</h1>\
         <p class=\"verdict\"><strong class=\"pill {}\">{}</strong> <span class=\"reason\">{}</span> <span class=\"t\">{}</span></p><dl class=\"facts\">",
        line(&story.run_id, 200),
        line(&overview.task, most::SENTENCE),
        svg::tone(story.tone()),
        story.status().replace('_', " "),
        story.reason().replace('_', " "),
        line(detail, most::SENTENCE)
    );
    for fact in words::facts(story, report.written) {
        let _ = write!(
            out,
            "<div class=\"{}\"><dt>{}</dt><dd class=\"t\">{}</dd><dd class=\"more t\">{}</dd></div>",
            fact.name.to_lowercase(),
            fact.name,
            line(&fact.value, 120),
            line(&fact.more, 120)
        );
    }
    out.push_str("</dl>");
    let agents: Vec<String> =
        overview.agents.iter().take(8).map(|agent| format!("<code>{}</code>", line(agent, 90))).collect();
    if !agents.is_empty() {
        let _ = write!(out, "<p class=\"played\">Played by {}</p>", agents.join(", "));
    }
    out.push_str("<nav aria-label=\"Sections\">");
    for (id, name, there) in [
        ("cycles", "Cycles", true),
        ("findings", "Findings", true),
        ("convergence", "Convergence", svg::converges(story)),
        ("cost", "Cost", true),
        ("shadows", "Shadows", !story.corrections.is_empty()),
        ("questions", "Questions", !story.questions.is_empty()),
        ("decisions", "Decisions", true),
        ("change", "Change", true),
        ("artifacts", "Artifacts", true),
        ("events", "Events", report.dag.is_some()),
    ] {
        if there {
            let _ = write!(out, "<a href=\"#{id}\">{name}</a>");
        }
    }
    out.push_str("</nav></header>\n");
}

/// What there is to decide stands open; what led to it is a click away, and most of it is told below in any case.
fn broke(out: &mut String, page: &str) {
    let decision = page.match_indices("\n## ").nth(1).map_or(page.len(), |(at, _)| at);
    let (first, rest) = page.split_at(decision);
    let more = if rest.trim().is_empty() {
        String::new()
    } else {
        format!("<details><summary>The whole page</summary>{}</details>", blocks::draw(rest))
    };
    section(out, "break", "The run stopped by itself", &format!("{}{more}", blocks::draw(first)));
}

fn next(out: &mut String, story: &Story) {
    out.push_str("<section id=\"next\" class=\"next\"><h2>Next</h2><ul>");
    for (command, meaning) in &story.next {
        let _ = write!(
            out,
            "<li><code>{}</code> <span class=\"soft\">{meaning}</span></li>",
            line(command, most::SENTENCE)
        );
    }
    out.push_str("</ul></section>\n");
}

fn findings(story: &Story) -> String {
    let mut out = String::new();
    if story.lives.is_empty() {
        out.push_str("<p class=\"soft\">No finding above INFO was open at the end of any cycle.</p>");
    } else {
        lives(&mut out, story);
    }
    if !story.raised.is_empty() {
        out.push_str("<h3>Raised by the program itself</h3><ul class=\"plain\">");
        for raised in story.raised.iter().take(most::OTHERS) {
            let found = &raised.finding;
            let _ = write!(
                out,
                "<li>{} <code>{}</code> <span class=\"t\">{}</span> <span class=\"seq\">#{}</span></li>",
                badge(found.severity),
                line(&found.location, 120),
                line(&found.description, most::SENTENCE),
                raised.seq
            );
        }
        out.push_str("</ul>");
        more(&mut out, story.raised.len(), most::OTHERS);
    }
    if !story.set_aside.is_empty() {
        out.push_str("<h3>Counted as advice only</h3><ul class=\"plain\">");
        for aside in story.set_aside.iter().take(most::OTHERS) {
            let what = &aside.what;
            let _ = write!(
                out,
                "<li>{} <span class=\"t\">{}</span> <span class=\"soft\">{}, cycle {}: {}</span> <span class=\"seq\">#{}</span></li>",
                badge(what.from),
                line(&what.description, most::SENTENCE),
                line(&capital(&what.archetype), 40),
                aside.cycle,
                what.reason.name().replace('_', " "),
                aside.seq
            );
        }
        out.push_str("</ul>");
        more(&mut out, story.set_aside.len(), most::OTHERS);
    }
    out
}

fn lives(out: &mut String, story: &Story) {
    let cycles = story.lives.first().map_or(0, |life| life.states.len());
    let from = cycles.saturating_sub(most::CYCLES_DOTTED);
    out.push_str("<div class=\"wide\"><table class=\"lives\"><thead><tr><th scope=\"col\">Finding</th>");
    for n in from..cycles {
        let _ =
            write!(out, "<th scope=\"col\" class=\"dot\"><abbr title=\"cycle {0}\">{0}</abbr></th>", n + 1);
    }
    out.push_str("</tr></thead><tbody>");
    story.lives.iter().take(most::FINDINGS).for_each(|life| one_life(out, life, from));
    out.push_str("</tbody></table></div>");
    more(out, story.lives.len(), most::FINDINGS);
    if from > 0 {
        let _ = write!(out, "<p class=\"soft\">The first {} not shown.</p>", words::count(from, "cycle"));
    }
    out.push_str("<p class=\"key\">");
    for state in State::ALL.into_iter().filter(|state| *state != State::Absent) {
        let _ = write!(
            out,
            "<span><svg class=\"mark\" aria-hidden=\"true\"><use href=\"#{0}\"/></svg>{0}</span>",
            state.name()
        );
    }
    out.push_str("</p>");
}

fn one_life(out: &mut String, life: &Life, from: usize) {
    let closed = if life.is_open() { "" } else { " class=\"closed\"" };
    let again = life
        .regression_of
        .as_ref()
        .map(|run| format!(" <em class=\"again\">resolved before in {}</em>", line(run, 80)));
    let fix = if life.fix.is_empty() {
        String::new()
    } else {
        format!("<p class=\"fix t\">{}</p>", line(&life.fix, most::SENTENCE))
    };
    let _ = write!(
        out,
        "<tr{closed}><th scope=\"row\">{} <span class=\"t what\">{}</span>{}<p class=\"where\"><code>{}</code> {} · {}</p>{fix}</th>",
        badge(life.severity),
        line(&life.description, most::SENTENCE),
        again.unwrap_or_default(),
        line(&life.place(), 120),
        line(&life.category, 40),
        line(&life.source.join(", "), 80)
    );
    for (n, state) in life.states.iter().enumerate().skip(from) {
        let _ = write!(
            out,
            "<td class=\"dot\"><svg class=\"mark\" role=\"img\" aria-label=\"cycle {}: {1}\"><title>{1}</title><use href=\"#{1}\"/></svg></td>",
            n + 1,
            state.name()
        );
    }
    out.push_str("</tr>");
}

fn badge(severity: Severity) -> String {
    format!("<span class=\"badge {}\">{}</span>", severity.name().to_lowercase(), severity.name())
}

fn convergence(story: &Story, plot: &str) -> String {
    let last = story.cycles.iter().rev().find_map(|cycle| cycle.end.as_ref()?.trend.as_ref());
    let words = last.map_or_else(String::new, |trend| {
        format!(
            "<p class=\"lead\"><strong>{}</strong> <span class=\"t\">{}</span></p>",
            line(&capital(&trend.recommendation), 80),
            line(&trend.reason, most::SENTENCE)
        )
    });
    format!(
        "{words}<figure class=\"wide\">{plot}<figcaption>Above: the convergence score, 1.00 when everything that moved was resolved. \
         Below, by cycle: findings that are <span class=\"k persistent\">persistent</span>, <span class=\"k new\">new</span>, \
         <span class=\"k regressed\">back again</span>, and under the line <span class=\"k resolved\">resolved</span>.</figcaption></figure>"
    )
}

fn costs(story: &Story) -> String {
    if story.costs.is_empty() {
        return "<p class=\"soft\">Nobody was sent.</p>".to_owned();
    }
    let by_time = story.overview.spent.0 == 0;
    let share = |cost: &Cost| if by_time { cost.worked_ms } else { cost.cost.0 };
    let whole = story.costs.iter().map(share).max().unwrap_or(0);
    let counted = story.costs.iter().any(|cost| cost.counted > 0);
    let column = |there: bool, inner: &str| if there { inner.to_owned() } else { String::new() };
    let mut out = format!(
        "<div class=\"wide\"><table class=\"costs\"><thead><tr><th>Archetype</th><th>Model</th><th class=\"n\">Attempts</th><th class=\"n\">Time</th>{}{}<th></th></tr></thead><tbody>",
        column(counted, "<th class=\"n\">Tokens in</th><th class=\"n\">Tokens out</th>"),
        column(!by_time, "<th class=\"n\">Cost</th>")
    );
    for cost in story.costs.iter().take(most::OTHERS) {
        let known = if cost.unknown == cost.attempts { "—".to_owned() } else { cost.cost.shown() };
        let tokens = |n: u64| if cost.counted == 0 { "—".to_owned() } else { thousands(n) };
        let tokens = format!(
            "<td class=\"n\">{}</td><td class=\"n\">{}</td>",
            tokens(cost.tokens.input),
            tokens(cost.tokens.output)
        );
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>{}{}<td>{}</td></tr>",
            line(&capital(&cost.archetype), 40),
            cost.model.name(),
            cost.attempts,
            view::seconds(cost.worked_ms),
            column(counted, &tokens),
            column(!by_time, &format!("<td class=\"n\">{known}</td>")),
            svg::share(share(cost), whole)
        );
    }
    out.push_str("</tbody></table></div>");
    if by_time {
        out.push_str("<p class=\"soft note\">No agent said what it cost; the bars compare time.</p>");
    } else if story.overview.unknown_costs > 0 {
        let silent = words::count(story.overview.unknown_costs as usize, "attempt");
        let _ = write!(out, "<p class=\"soft note\">{silent} did not say what they cost.</p>");
    }
    out
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<&str> =
        (0..digits.len()).rev().step_by(3).map(|end| &digits[end.saturating_sub(2)..=end]).collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(" ")
}

fn corrections(out: &mut String, story: &Story) {
    if story.corrections.is_empty() {
        return;
    }
    let mut inner = String::from("<ul class=\"cards\">");
    for seen in story.corrections.iter().take(most::OTHERS) {
        let _ = write!(
            inner,
            "<li><p><strong>{}</strong> of the <span class=\"t\">{}</span> <span class=\"pill caution\">{}</span> \
             <span class=\"soft\">cycle {}</span> <span class=\"seq\">#{}</span></p><p class=\"t\">{}</p><details><summary>What follows</summary><pre class=\"t\">{}</pre></details></li>",
            line(&capital(&seen.shadow.replace('_', " ")), 60),
            line(&capital(&seen.archetype), 40),
            seen.action.name(),
            seen.cycle,
            seen.seq,
            line(&seen.seen.join("; "), most::SENTENCE),
            lines(&seen.detail, most::PARAGRAPH)
        );
    }
    inner.push_str("</ul>");
    more(&mut inner, story.corrections.len(), most::OTHERS);
    section(out, "shadows", "Shadows and corrections", &inner);
}

fn questions(out: &mut String, story: &Story) {
    if story.questions.is_empty() {
        return;
    }
    let mut inner = String::from("<ul class=\"cards\">");
    for question in story.questions.iter().take(most::OTHERS) {
        let answer = question
            .answer
            .as_deref()
            .map_or("<span class=\"soft\">Nobody has answered.</span>".to_owned(), |text| {
                line(text, most::SENTENCE)
            });
        let _ = write!(
            inner,
            "<li><p class=\"t\"><strong>{}</strong> <span class=\"seq\">#{}</span></p><p class=\"t\">{answer}</p></li>",
            line(&question.text, most::SENTENCE),
            question.seq
        );
    }
    inner.push_str("</ul>");
    section(out, "questions", "Questions", &inner);
}

fn decisions(story: &Story) -> String {
    let mut out = String::from(
        "<div class=\"wide\"><table class=\"decisions\"><thead><tr><th class=\"n\">#</th><th>Rule</th><th>Decided</th></tr></thead><tbody>",
    );
    let (first, left_out, last) = split(&story.decisions, most::DECISIONS);
    let mut cycle = 0;
    for (n, choice) in first.iter().chain(last).enumerate() {
        if n == first.len() && left_out > 0 {
            let _ = write!(out, "<tr class=\"rest\"><td colspan=\"3\">{left_out} left out</td></tr>");
        }
        if choice.cycle != cycle {
            cycle = choice.cycle;
            let _ = write!(out, "<tr class=\"cycle\"><td colspan=\"3\">Cycle {cycle}</td></tr>");
        }
        decision(&mut out, choice);
    }
    out.push_str("</tbody></table></div>");
    out
}

fn decision(out: &mut String, choice: &Choice) {
    let _ = write!(
        out,
        "<tr><td class=\"n seq\">{}</td><td><span class=\"rule {}\">{}</span></td><td><p class=\"t\">{}</p><p class=\"because t\">{}: {}</p></td></tr>",
        choice.seq,
        choice.phase.name(),
        line(&choice.why.rule, 20),
        line(&choice.why.decision, most::SENTENCE),
        line(&choice.why.who, 40),
        line(&choice.why.input, most::SENTENCE)
    );
}

fn change(report: &Report<'_>) -> String {
    let diff = report.diff;
    if let Some(why) = &diff.missing {
        return format!("<p class=\"soft t\">{}</p>", line(why, most::SENTENCE));
    }
    let mut out = format!(
        "<p class=\"soft\">{}, <span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></p>",
        words::count(diff.files.len() + diff.files_left_out, "file"),
        diff.added(),
        diff.deleted()
    );
    // Many files are a list to choose from; few are there to be read.
    let open = if diff.files.len() <= 20 { " open" } else { "" };
    diff.files.iter().for_each(|file| one_file(&mut out, file, open));
    if let Some(left_out) = diff.left_out() {
        let _ = write!(
            out,
            "<p class=\"soft\">{left_out} See all of it: <code>{}</code></p>",
            line(&diff.command, 300)
        );
    }
    out
}

fn one_file(out: &mut String, file: &FileDiff, open: &str) {
    let from = file
        .from
        .as_ref()
        .map(|from| format!(" <span class=\"soft\">from {}</span>", html(&revealed(from, 200))));
    let _ = write!(
        out,
        "<details class=\"file\"{open}><summary><code>{}</code>{} <span class=\"soft\">{}</span> <span class=\"plus\">+{}</span> <span class=\"minus\">−{}</span></summary><pre class=\"diff\">",
        html(&revealed(&file.path, 200)),
        from.unwrap_or_default(),
        file.word,
        file.added,
        file.deleted
    );
    for (kind, text) in &file.lines {
        let class = match kind {
            Kind::Hunk => "hunk",
            Kind::Same => "same",
            Kind::Added => "add",
            Kind::Deleted => "del",
            Kind::Note => "note",
        };
        let _ = write!(out, "<span class=\"{class}\">{}\n</span>", html(&revealed(text, most::SENTENCE)));
    }
    if file.left_out > 0 {
        let _ = write!(out, "<span class=\"note\">… {} more lines of this file\n</span>", file.left_out);
    }
    out.push_str("</pre></details>");
}

fn artifacts(story: &Story) -> String {
    if story.artifacts.is_empty() {
        return "<p class=\"soft\">None.</p>".to_owned();
    }
    let mut out = format!(
        "<p class=\"soft\">In <code>.archeflow/artifacts/{}/</code>; those of earlier cycles in <code>cycle-&lt;n&gt;/</code>.</p><div class=\"wide\"><table><thead><tr><th class=\"n\">Cycle</th><th>File</th><th>By</th><th class=\"n\">#</th></tr></thead><tbody>",
        line(&story.run_id, 200)
    );
    for kept in story.artifacts.iter().take(most::ARTIFACTS) {
        let _ = write!(
            out,
            "<tr><td class=\"n\">{}</td><td><code>{}</code></td><td>{}</td><td class=\"n seq\">{}</td></tr>",
            kept.cycle,
            line(&kept.name, 120),
            line(&capital(&kept.by), 40),
            kept.seq
        );
    }
    out.push_str("</tbody></table></div>");
    more(&mut out, story.artifacts.len(), most::ARTIFACTS);
    out
}

fn more(out: &mut String, there: usize, told: usize) {
    if there > told {
        let _ = write!(out, "<p class=\"soft\">… and {} more.</p>", there - told);
    }
}

/// One line of other people's text, at most N characters.
pub(super) fn line(text: &str, most: usize) -> String {
    html(&short_line(text, most))
}

fn lines(text: &str, most: usize) -> String {
    html(&short_text(text, most))
}
