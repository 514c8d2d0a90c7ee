//! A JSON object of which we know only some fields. The others keep their text, digit for digit, and their order.

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Default)]
pub(super) struct JsonFields(Vec<(String, Box<RawValue>)>);

impl JsonFields {
    pub(super) fn get<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Option<T> {
        let (_, value) = self.0.iter().find(|(known, _)| known == name)?;
        serde_json::from_str(value.get()).ok()
    }

    /// Changes a field in its place, or adds it at the end.
    pub(super) fn set(&mut self, name: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
        let value = serde_json::value::to_raw_value(value)?;
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => *place = value,
            None => self.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// All fields, read as something that knows some of them.
    pub(super) fn read<T: for<'de> Deserialize<'de>>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&serde_json::to_string(self)?)
    }
}

impl Serialize for JsonFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
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
        Ok(JsonFields(fields))
    }
}
