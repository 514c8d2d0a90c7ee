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

    /// Whether a field is another than when it was read.
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }
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
