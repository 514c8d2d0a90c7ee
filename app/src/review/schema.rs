//! As much of JSON Schema as the schemas under `docs/schemas` use. A word it does not know is an error, so that no
//! schema is believed to hold more than is checked.

use serde_json::{Map, Value};

/// What is wrong with the value, with the place of each fault.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root: schema, faults: Vec::new() };
    check.value(schema, value, "$");
    check.faults
}

struct Check<'a> {
    root: &'a Value,
    faults: Vec<String>,
}

impl<'a> Check<'a> {
    fn value(&mut self, schema: &'a Value, value: &Value, at: &str) {
        if schema == &Value::Bool(true) {
            return;
        }
        let Some(schema) = schema.as_object() else {
            return self.faults.push(format!("{at}: the schema {schema} is no object"));
        };
        for (word, rule) in schema {
            if let Err(fault) = self.word(schema, word, rule, value, at) {
                self.faults.push(format!("{at}: {fault}"));
            }
        }
    }

    fn word(
        &mut self,
        schema: &'a Map<String, Value>,
        word: &str,
        rule: &'a Value,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let holds = match word {
            "$schema" | "$id" | "$comment" | "title" | "description" | "definitions" | "default" => true,
            "$ref" => {
                let path = rule.as_str().and_then(|path| path.strip_prefix('#')).unwrap_or("?");
                let target = self.root.pointer(path).ok_or(format!("{rule} leads nowhere"))?;
                self.value(target, value, at);
                true
            }
            "type" => {
                rule.as_array().map_or(is_a(rule, value), |all| all.iter().any(|name| is_a(name, value)))
            }
            "enum" => rule.as_array().is_some_and(|all| all.contains(value)),
            "const" => rule == value,
            "minimum" => value.as_f64().is_none_or(|n| rule.as_f64().is_some_and(|least| n >= least)),
            "maximum" => value.as_f64().is_none_or(|n| rule.as_f64().is_some_and(|most| n <= most)),
            "minItems" => {
                value.as_array().is_none_or(|all| rule.as_u64().is_some_and(|n| all.len() as u64 >= n))
            }
            "minLength" => {
                value.as_str().is_none_or(|s| rule.as_u64().is_some_and(|n| s.chars().count() as u64 >= n))
            }
            "uniqueItems" => value.as_array().is_none_or(|all| {
                let mut texts: Vec<String> = all.iter().map(Value::to_string).collect();
                texts.sort();
                rule != true || texts.windows(2).all(|pair| pair[0] != pair[1])
            }),
            "pattern" => value.as_str().is_none_or(|text| matches(rule.as_str().unwrap_or_default(), text)),
            "format" => value.as_str().is_none_or(|text| is_formed(rule.as_str().unwrap_or_default(), text)),
            "items" => {
                for (n, one) in value.as_array().into_iter().flatten().enumerate() {
                    self.value(rule, one, &format!("{at}[{n}]"));
                }
                true
            }
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                let missing: Vec<&str> = names.filter(|name| value.get(name).is_none()).collect();
                if value.is_object() && !missing.is_empty() {
                    return Err(format!("lacks {}", missing.join(", ")));
                }
                true
            }
            "properties" => {
                for (name, one) in value.as_object().into_iter().flatten() {
                    if let Some(schema) = rule.get(name) {
                        self.value(schema, one, &format!("{at}.{name}"));
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                for (name, one) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| known.get(name).is_none()) {
                        if rule == &Value::Bool(false) {
                            return Err(format!("must not have '{name}'"));
                        }
                        self.value(rule, one, &format!("{at}.{name}"));
                    }
                }
                true
            }
            "anyOf" | "oneOf" => {
                let fits = |one: &&Value| {
                    let mut check = Check { root: self.root, faults: Vec::new() };
                    check.value(one, value, at);
                    check.faults.is_empty()
                };
                let fitting = rule.as_array().into_iter().flatten().filter(fits).count();
                fitting == 1 || (word == "anyOf" && fitting > 1)
            }
            unknown => return Err(format!("the schema says '{unknown}', which nobody checks")),
        };
        if holds { Ok(()) } else { Err(format!("{word} {rule} does not hold for {}", shortened(value))) }
    }
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

fn is_a(name: &Value, value: &Value) -> bool {
    match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

/// Of the patterns in use, those that our documents meet.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern {
        "^[0-9a-f]{32}$" => text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')),
        _ => false,
    }
}

/// Addresses hold no blanks, no controls and nothing beyond ASCII, and percent signs come with two digits.
fn is_formed(format: &str, text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
    let encoded = text
        .split('%')
        .skip(1)
        .all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|b| b.is_ascii_hexdigit()));
    let scheme = text.split(['/', '?', '#']).next().unwrap_or_default().contains(':');
    match format {
        "uri" => plain && encoded && scheme,
        "uri-reference" => plain && encoded,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::faults;
    use serde_json::json;

    #[test]
    fn r17_a_schema_that_is_not_met_is_seen() {
        let schema = json!({
            "type": "object", "required": ["a"], "additionalProperties": false,
            "properties": {
                "a": { "$ref": "#/definitions/few" },
                "b": { "type": ["integer", "null"], "minimum": 1 },
                "c": { "format": "uri-reference" },
                "d": { "anyOf": [{ "const": 1 }, { "type": "string", "minLength": 2 }] },
            },
            "definitions": { "few": { "type": "array", "items": { "enum": ["x", "y"] }, "minItems": 1, "uniqueItems": true } },
        });
        for (fine, value) in [
            (true, json!({ "a": ["x"] })),
            (true, json!({ "a": ["x", "y"], "b": null, "c": "a%20b/c", "d": "xx" })),
            (false, json!({})),
            (false, json!([])),
            (false, json!({ "a": [] })),
            (false, json!({ "a": ["x", "x"] })),
            (false, json!({ "a": ["z"] })),
            (false, json!({ "a": ["x"], "b": 0 })),
            (false, json!({ "a": ["x"], "b": 1.5 })),
            (false, json!({ "a": ["x"], "c": "a b" })),
            (false, json!({ "a": ["x"], "c": "a%2" })),
            (false, json!({ "a": ["x"], "d": "x" })),
            (false, json!({ "a": ["x"], "e": 1 })),
        ] {
            assert_eq!(faults(&schema, &value).is_empty(), fine, "{value}: {:?}", faults(&schema, &value));
        }
        assert!(!faults(&json!({ "multipleOf": 2 }), &json!(4)).is_empty(), "an unknown word is no yes");
    }
}
