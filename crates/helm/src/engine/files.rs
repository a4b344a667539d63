//! `.Files`: the chart's files that are neither templates nor metadata.

use std::{borrow::Cow, collections::BTreeMap, rc::Rc, sync::Arc};

use base64::Engine as _;
use tiphys_gocompat::rawstr;
use tiphys_gotemplate::{CallError, CallResult, Clock, Kind, Map, Object, Signature, Type, Value};
use tiphys_value::Value as Json;

use super::glob::Glob;
use crate::chart::ChartFile;

/// Go's `engine.files`.
pub(crate) struct Files(BTreeMap<Arc<str>, ChartFile>);

impl Files {
    /// The files of a chart, by path.
    pub(crate) fn new(files: &[ChartFile]) -> Self {
        Self(files.iter().map(|file| (file.name.clone(), file.clone())).collect())
    }

    fn bytes(&self, name: &str) -> Result<&[u8], CallError> {
        self.0.get(name).map_or(Ok(&[]), content)
    }

    fn lines(&self, name: &str) -> CallResult {
        let data = self.bytes(name)?;
        if data.is_empty() {
            return Ok(Value::strings(Vec::<&str>::new()));
        }
        let text = rawstr::encode(data);
        Ok(Value::strings(text.strip_suffix('\n').unwrap_or(&text).split('\n')))
    }

    /// A YAML map from the files' names (without folders) to their contents.
    fn as_map(&self, shown: impl Fn(&[u8]) -> String) -> CallResult {
        let entry = |(name, file): (&Arc<str>, &ChartFile)| {
            Ok((tiphys_vfs::base_name(name).to_owned(), Json::String(shown(content(file)?))))
        };
        let map = self.0.iter().map(entry).collect::<Result<tiphys_value::Map<String, Json>, CallError>>()?;
        let mut yaml = tiphys_yaml::to_yaml(&Json::Object(map));
        if yaml.ends_with('\n') {
            yaml.pop();
        }
        Ok(Value::from(yaml))
    }
}

/// A file's bytes; a file that vanished meanwhile fails the template.
fn content(file: &ChartFile) -> Result<&[u8], CallError> {
    file.data().map(|data| &**data).map_err(|error| CallError::new(error.to_string()))
}

impl Object for Files {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed("engine.files")
    }

    fn kind(&self) -> Kind {
        Kind::Named
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::fixed(&[Type::String])),
            "AsConfig" | "AsSecrets" => Some(Signature::fixed(&[])),
            _ => None,
        }
    }

    fn call(&self, _clock: &dyn Clock, name: &str, args: &[Value]) -> CallResult {
        let arg = args.first().and_then(Value::as_str).unwrap_or_default();
        Ok(match name {
            "Get" => Value::string(rawstr::encode(self.bytes(arg)?)),
            "GetBytes" => Value::Bytes(Rc::from(self.bytes(arg)?)),
            "Glob" => {
                let glob = Glob::new(arg);
                let matching = self.0.iter().filter(|(name, _)| glob.matches(name));
                Value::object(Self(matching.map(|(name, file)| (name.clone(), file.clone())).collect()))
            }
            "Lines" => self.lines(arg)?,
            "AsConfig" => self.as_map(|data| String::from_utf8_lossy(data).into_owned())?,
            _ => self.as_map(|data| base64::engine::general_purpose::STANDARD.encode(data))?,
        })
    }

    fn missing_entry(&self) -> Option<Value> {
        Some(Value::Bytes(Rc::default()))
    }

    fn content(&self) -> Option<Value> {
        let map = Map::new();
        for (name, file) in &self.0 {
            map.insert(&**name, Value::Bytes(Rc::from(content(file).ok()?)));
        }
        Some(Value::Map(map))
    }
}
