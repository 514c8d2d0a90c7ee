//! What an agent wrote to its usage file. Anything unreadable is no statement; a cost that is no amount is one that
//! can't be believed.

use std::path::Path;

use archeflow_core::event::Tokens;
use archeflow_core::rules::ledger::{Stated, Usage};
use serde_json::Value;

use crate::store::files;

pub(super) const LARGEST: u64 = 64 * 1024;

pub(super) fn read(path: &Path) -> Usage {
    let bytes = files::read_capped(path, LARGEST).unwrap_or_default();
    serde_json::from_slice(&bytes).map(|value| usage(&value)).unwrap_or_default()
}

fn usage(value: &Value) -> Usage {
    let number = |name: &str| value.get(name).and_then(whole);
    let tokens = match (number("input_tokens"), number("output_tokens")) {
        (Some(input), Some(output)) => {
            let (cache_read, cache_write) = (number("cache_read_tokens"), number("cache_write_tokens"));
            let (cache_read, cache_write) = (cache_read.unwrap_or(0), cache_write.unwrap_or(0));
            Some(Tokens { input, output, cache_read, cache_write })
        }
        (Some(_), None) | (None, Some(_) | None) => None,
    };
    let model = value.get("model").and_then(Value::as_str).unwrap_or_default();
    let fits = model.len() <= 200 && !model.contains(char::is_control);
    let model = if fits { model.to_owned() } else { "an invalid name".to_owned() };
    Usage { tokens, cost: cost(value.get("cost_usd")), model }
}

fn cost(value: Option<&Value>) -> Stated {
    match value {
        None | Some(Value::Null) => Stated::Nothing,
        Some(Value::Number(number)) => Stated::read(&number.to_string()),
        Some(Value::String(text)) => Stated::read(text),
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => Stated::Unusable,
    }
}

/// Some clients write numbers as text.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use archeflow_core::event::Tokens;
    use archeflow_core::model::Money;
    use archeflow_core::rules::ledger::Stated;
    use serde_json::json;

    use super::usage;

    #[test]
    fn m_d12_a_cost_that_is_no_amount_is_not_believed() {
        for (cost, wanted) in [
            (json!(0.25), Stated::Amount(Money(250_000))),
            (json!(1e-7), Stated::Amount(Money(1))),
            (json!("0.25"), Stated::Amount(Money(250_000))),
            (json!(0), Stated::Amount(Money(0))),
            (json!(null), Stated::Nothing),
            (json!(-1), Stated::Unusable),
            (json!(-0.1), Stated::Unusable),
            (json!(1e300), Stated::Unusable),
            (json!("NaN"), Stated::Unusable),
            (json!("inf"), Stated::Unusable),
            (json!([1]), Stated::Unusable),
        ] {
            assert_eq!(usage(&json!({ "cost_usd": cost })).cost, wanted, "{cost}");
        }
        assert_eq!(usage(&json!("nothing of the kind")).cost, Stated::Nothing);
    }

    #[test]
    fn interfaces_3_tokens_need_both_numbers() {
        let tokens = |value| usage(&value).tokens;
        let both = Tokens { input: 10, output: 2, ..Tokens::default() };
        assert_eq!(tokens(json!({"input_tokens": 10, "output_tokens": 2})), Some(both));
        assert_eq!(tokens(json!({"input_tokens": "10", "output_tokens": "2"})), Some(both));
        let cached =
            json!({"input_tokens": 10, "output_tokens": 2, "cache_read_tokens": 7, "cache_write_tokens": 1});
        assert_eq!(tokens(cached), Some(Tokens { cache_read: 7, cache_write: 1, ..both }));
        assert_eq!(tokens(json!({"input_tokens": 10})), None);
        assert_eq!(tokens(json!({"input_tokens": -10, "output_tokens": 2})), None);
    }
}
