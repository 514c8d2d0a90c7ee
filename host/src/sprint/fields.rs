//! A JSON object of which we know only some fields. The others keep their text, digit for digit, and their order.

use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Default)]
pub(super) struct JsonFields {
    fields: Vec<(String, Box<RawValue>)>,
    is_changed: bool,
}

impl JsonFields {
    pub(super) fn get<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.text(name)?).ok()
    }

    /// The field as it is written.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(known, _)| known == name)?;
        Some(value.get())
    }

    /// Changes a field in its place, or adds it at the end.
    pub(super) fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
        let value = serde_json::value::to_raw_value(value)?;
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => {
                self.is_changed |= place.get() != value.get();
                *place = value;
            }
            None => {
                self.is_changed = true;
                self.fields.push((name.to_owned(), value));
            }
        }
        Ok(())
    }

    /// Keeps the place of a field and not its value.
    pub(super) fn vacate(&mut self, name: &str) {
        if let Some((_, value)) = self.fields.iter_mut().find(|(known, _)| known == name) {
            *value = RawValue::NULL.to_owned();
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        let before = self.fields.len();
        self.fields.retain(|(known, _)| known != name);
        self.is_changed |= self.fields.len() != before;
    }

    /// As text with a field a line, indented by so much. What is in a field keeps its own breaks.
    pub(super) fn lines(&self, indent: usize) -> Result<String, serde_json::Error> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.get()));
        lines(indent, &fields.collect::<Vec<_>>())
    }

    /// The same with another value for one field, in its place or at the end.
    pub(super) fn lines_with(
        &self,
        indent: usize,
        name: &str,
        value: &str,
    ) -> Result<String, serde_json::Error> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.get()));
        let mut fields: Vec<(&str, &str)> = fields.collect();
        match fields.iter_mut().find(|(known, _)| *known == name) {
            Some(field) => field.1 = value,
            None => fields.push((name, value)),
        }
        lines(indent, &fields)
    }

    /// It is written as it is.
    pub(super) fn unchanged(&mut self) {
        self.is_changed = false;
    }

    /// Whether a field is another than when it was read.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }
}

fn lines(indent: usize, fields: &[(&str, &str)]) -> Result<String, serde_json::Error> {
    let size: usize = fields.iter().map(|(name, value)| name.len() + value.len() + indent + 6).sum();
    let mut text = String::with_capacity(size + 4);
    text.push('{');
    for (n, (name, value)) in fields.iter().enumerate() {
        text.push_str(if n == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', indent));
        text.push_str(&serde_json::to_string(name)?);
        text.push_str(": ");
        text.push_str(value);
    }
    if !fields.is_empty() {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent.saturating_sub(2)));
    }
    text.push('}');
    Ok(text)
}

impl Serialize for JsonFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for JsonFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonFields, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = JsonFields;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(JsonFields { fields, is_changed: false })
    }
}

/// The text of a queue in one pass: its own fields, and its items where they are.
pub(super) struct QueueText<'a> {
    /// With an empty place for the items.
    pub(super) head: JsonFields,
    pub(super) items: Vec<&'a RawValue>,
}

impl<'de> Deserialize<'de> for QueueText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueText<'de>, D::Error> {
        deserializer.deserialize_map(WithItems)
    }
}

struct WithItems;

impl<'de> Visitor<'de> for WithItems {
    type Value = QueueText<'de>;

    fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("an object with one list of objects named 'items'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<QueueText<'de>, A::Error> {
        let mut fields = Vec::new();
        let mut items: Option<Vec<&RawValue>> = None;
        while let Some(name) = map.next_key::<String>()? {
            let value = if name == "items" {
                let list: Vec<&RawValue> = map.next_value()?;
                let is_odd = items.is_some() || !list.iter().all(|item| item.get().starts_with('{'));
                if is_odd {
                    return Err(Error::invalid_value(Unexpected::Seq, &self));
                }
                items = Some(list);
                RawValue::NULL.to_owned()
            } else {
                map.next_value()?
            };
            fields.push((name, value));
        }
        let items = items.ok_or_else(|| Error::missing_field("items"))?;
        Ok(QueueText { head: JsonFields { fields, is_changed: false }, items })
    }
}
