//! What the end of a turn and an error mean, and which figures can be believed. No two agents do it alike.

use archeflow_core::event::{Failure, Tokens};
use serde_json::Value;

use crate::client_output::{ClientFault, by_status, by_text, first_line, number, text};

/// The protocol's own number for "sign in first".
const SIGN_IN: i64 = -32_000;

/// From a JSON-RPC error. Agents put the provider's status in the code, in the message or in the data.
pub(super) fn fault(error: &Value) -> ClientFault {
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    let said = words(error);
    let kind = match u64::try_from(code) {
        Ok(status @ 400..=599) => by_status(status, &said),
        Ok(_) | Err(_) if code == SIGN_IN => Failure::Auth,
        Ok(_) | Err(_) => by_text(&said),
    };
    ClientFault::new(kind, said)
}

/// The message, and what the data adds to it.
fn words(error: &Value) -> String {
    let message = plain(text(error, "message"));
    let data = error.get("data").unwrap_or(&Value::Null);
    let more = [data.as_str().unwrap_or_default(), text(data, "message"), text(data, "details")];
    let all = [&[message.as_str()][..], &more].concat();
    all.into_iter().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(": ")
}

/// Some messages are the provider's JSON as it came.
fn plain(said: &str) -> String {
    let value = serde_json::from_str::<Value>(said).ok();
    let inner = value.as_ref().and_then(|value| value.pointer("/error/message")).and_then(Value::as_str);
    inner.unwrap_or(said).to_owned()
}

/// Whether an agent reports that it has failed, or that it works again.
pub(super) fn broken(update: &Value) -> Option<bool> {
    let status = text(update.pointer("/_meta/codex/threadStatus")?, "type");
    match status {
        "systemError" => Some(true),
        "active" => Some(false),
        _ => None,
    }
}

/// Why a turn that was answered is no answer. Some report errors as if they were answers: one of them prints that it is
/// broken before, another begins in the same way each time and then has no usage.
pub(super) fn unanswered(result: &Value, answer: &str, broken: bool) -> Option<ClientFault> {
    let ran_into = answer.strip_prefix("Ran into this error:").filter(|_| result.get("usage").is_none());
    let told = if broken { Some(answer) } else { ran_into };
    match (text(result, "stopReason"), told) {
        ("end_turn", Some(told)) => {
            let said = plain(told.trim());
            Some(ClientFault::new(by_text(&said), first_line(&said).unwrap_or_default()))
        }
        ("end_turn", None) => None,
        ("refusal", _) => Some(ClientFault::new(Failure::Refused, "the model declined the task")),
        ("max_tokens", _) => {
            Some(ClientFault::new(Failure::Garbled, "its answer was cut off by the model's limit"))
        }
        ("max_turn_requests", _) => {
            Some(ClientFault::new(Failure::Exit, "it used up the turns it allows itself"))
        }
        (other, _) => Some(ClientFault::new(Failure::Exit, format!("its turn ended with '{other}'"))),
    }
}

/// The usage of the whole turn, if the agent reports that. Many report the last request only, under the same name;
/// those with a quota report the sum. A count without side requests gives way to one that includes them (I4).
pub(super) fn used(result: &Value) -> Option<Tokens> {
    let quota = result.pointer("/_meta/quota")?;
    let turn = quota.get("token_count").filter(|count| count.is_object()).map(tokens)?;
    let models = quota.get("model_usage").and_then(Value::as_array).into_iter().flatten();
    let models = models.filter_map(|model| model.get("token_count")).map(tokens);
    let sum = models.reduce(add).unwrap_or_default();
    Some(Tokens {
        input: turn.input.max(sum.input),
        output: turn.output.max(sum.output),
        cache_read: turn.cache_read.max(sum.cache_read),
        cache_write: turn.cache_write.max(sum.cache_write),
    })
}

/// Agents that name cached tokens count them beside the input; here they are part of it.
fn tokens(count: &Value) -> Tokens {
    let of = |names: &[&str]| names.iter().map(|name| number(count, name)).max().unwrap_or_default();
    let cache_read = of(&["cachedInputTokens"]);
    let cache_write = of(&["cachedWriteTokens", "cacheWriteInputTokens"]);
    let input = of(&["inputTokens", "input_tokens"]).saturating_add(cache_read).saturating_add(cache_write);
    Tokens { input, output: of(&["outputTokens", "output_tokens"]), cache_read, cache_write }
}

fn add(one: Tokens, other: Tokens) -> Tokens {
    Tokens {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
    }
}

/// The model that did the turn, if it was one alone.
pub(super) fn model(result: &Value) -> Option<String> {
    let models = result.pointer("/_meta/quota/model_usage")?.as_array()?;
    let [only] = models.as_slice() else { return None };
    Some(text(only, "model").to_owned()).filter(|model| !model.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn issue_4_errors_are_distinguished() {
        for (error, kind) in [
            (json!({"code": -32000, "message": "Authentication required"}), Failure::Auth),
            (
                json!({"code": 401, "message": "{\"error\":{\"message\":\"invalid x-api-key\"}}"}),
                Failure::Auth,
            ),
            (json!({"code": 429, "message": "slow down"}), Failure::RateLimit),
            (json!({"code": 500, "message": "oops"}), Failure::Overload),
            (json!({"code": -32603, "message": "Internal error: invalid x-api-key"}), Failure::Auth),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"message": "unexpected status 401 Unauthorized: no"}}),
                Failure::Auth,
            ),
            (
                json!({"code": -32603, "message": "Internal error", "data": {"details": "API Error: 529 Overloaded"}}),
                Failure::Overload,
            ),
            (json!({"code": -32603, "message": "prompt is too long"}), Failure::ContextTooLong),
            (json!({"code": -32602, "message": "Invalid params"}), Failure::Exit),
            (json!({}), Failure::Exit),
        ] {
            assert_eq!(fault(&error).kind, kind, "{error}");
        }
    }

    #[test]
    fn issue_4_a_turn_may_end_without_an_answer() {
        for (result, answer, kind) in [
            (json!({"stopReason": "end_turn"}), "Done.", None),
            (json!({"stopReason": "end_turn", "usage": {}}), "Ran into this error: I mean a test's.", None),
            (
                json!({"stopReason": "end_turn"}),
                "Ran into this error: Rate limit exceeded: 429",
                Some(Failure::RateLimit),
            ),
            (json!({"stopReason": "refusal"}), "", Some(Failure::Refused)),
            (json!({"stopReason": "max_tokens"}), "half", Some(Failure::Garbled)),
            (json!({"stopReason": "max_turn_requests"}), "half", Some(Failure::Exit)),
            (json!({"stopReason": "cancelled"}), "half", Some(Failure::Exit)),
            (json!({}), "half", Some(Failure::Exit)),
        ] {
            assert_eq!(unanswered(&result, answer, false).map(|fault| fault.kind), kind, "{result}");
        }
        let told = unanswered(&json!({"stopReason": "end_turn"}), "last status: 429 Too Many Requests", true);
        assert_eq!(told.map(|fault| fault.kind), Some(Failure::RateLimit));
    }

    #[test]
    fn i4_the_last_request_alone_is_no_statement() {
        let of = |input, output| Tokens { input, output, ..Tokens::default() };
        for (result, wanted) in [
            (json!({"usage": {"inputTokens": 1200, "outputTokens": 20, "totalTokens": 1220}}), None),
            (
                json!({"usage": {"inputTokens": 100, "cachedReadTokens": 1100, "outputTokens": 20}, "_meta": {}}),
                None,
            ),
            (json!({"usage": null, "_meta": {"quota": {"token_count": null, "model_usage": []}}}), None),
            (
                json!({"_meta": {"quota": {"token_count": {"input_tokens": 3300, "output_tokens": 110}}}}),
                Some(of(3300, 110)),
            ),
            (
                json!({"_meta": {"quota": {"token_count": {"inputTokens": 5, "outputTokens": 1}, "model_usage": [
                    {"model": "a", "token_count": {"inputTokens": 5, "outputTokens": 1}},
                    {"model": "b", "token_count": {"inputTokens": 2, "outputTokens": 1}}]}}}),
                Some(of(7, 2)),
            ),
        ] {
            assert_eq!(used(&result), wanted, "{result}");
        }
    }
}
