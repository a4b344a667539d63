//! The two template languages: plain `{{ name }}` replacement, and Go templates with Sprig.

use std::{
    cell::OnceCell,
    sync::{Arc, LazyLock},
};

use serde_json::{Map as JsonMap, Value as Json};
use tiphys_gotemplate::{
    CallError, CallResult, Entropy, Env, ExecError, Function, Functions, Limit, Map, MissingKey, ParseError,
    SeededEntropy, TemplateSet, Type, Value,
};
use tiphys_value::ObjectExt;

use crate::{limits::Account, params};

/// Deeper templates are refused.
const MAX_DEPTH: usize = 100;
/// Generators with `values`.
const WITH_VALUES: [&str; 6] =
    ["clusters", "git", "scmProvider", "clusterDecisionResource", "pullRequest", "plugin"];

/// Renders texts of one ApplicationSet.
pub(crate) struct Renderer {
    language: Language,
    /// Namespace and name of the set.
    of: String,
    account: Account,
}

enum Language {
    Plain,
    Go(MissingKey),
    /// An option that Go's templates do not have.
    Unusable(String),
}

impl Language {
    fn from_set(set: &Json) -> Self {
        if set.at(&["spec", "goTemplate"]) != Some(&Json::Bool(true)) {
            return Self::Plain;
        }
        let options = set.at(&["spec", "goTemplateOptions"]).and_then(Json::as_array);
        let mut missing = MissingKey::NoValue;
        for option in options.into_iter().flatten().filter_map(Json::as_str) {
            missing = match option {
                "missingkey=error" => MissingKey::Error,
                "missingkey=zero" => MissingKey::Zero,
                "missingkey=default" | "missingkey=invalid" => MissingKey::NoValue,
                other => return Self::Unusable(other.to_owned()),
            };
        }
        Self::Go(missing)
    }
}

impl Renderer {
    /// The language that a set asks for.
    pub(crate) fn for_set(set: &Json) -> Self {
        let of = format!("{}/{}", set.namespace(), set.name());
        Self { language: Language::from_set(set), of, account: Account::open() }
    }

    /// What the set has taken so far.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    /// Whether parameters are trees.
    pub(crate) fn is_go(&self) -> bool {
        !matches!(self.language, Language::Plain)
    }

    /// Renders a text.
    ///
    /// # Errors
    /// The template does not parse or execute.
    pub(crate) fn text(&self, text: &str, params: &Map) -> Result<String, String> {
        match &self.language {
            Language::Plain => replace(text, params),
            Language::Unusable(option) => Err(format!("unrecognized option: {option}")),
            Language::Go(_) if !text.contains("{{") => Ok(text.to_owned()),
            Language::Go(missing) => {
                self.execute(text, params, *missing).map_err(|error| error.message(text))
            }
        }
    }

    /// Renders every text of a value, keys included. As Argo CD does it, a null in a map does not outlive it.
    ///
    /// # Errors
    /// As [`Self::text`], or the value is nested too deeply.
    pub(crate) fn value(&self, value: &Json, params: &Map) -> Result<Json, String> {
        self.render_nested(value, params, 0, false)
    }

    /// Renders the second generator of a matrix with a set of the first. Its `values` are rendered once more
    /// with its own parameters later; what asks for those waits until then.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub(crate) fn generator(&self, generator: &Json, params: &Map) -> Result<Json, String> {
        self.render_nested(generator, params, 0, true)
    }

    fn render_nested(
        &self,
        value: &Json,
        params: &Map,
        depth: usize,
        is_generator: bool,
    ) -> Result<Json, String> {
        if depth > MAX_DEPTH {
            return Err(format!("the template is nested deeper than {MAX_DEPTH}"));
        }
        match value {
            Json::String(text) => self.text(text, params).map(Json::from),
            Json::Array(list) => {
                let items: Result<Vec<_>, _> = list
                    .iter()
                    .map(|item| self.render_nested(item, params, depth + 1, is_generator))
                    .collect();
                items.map(Json::from)
            }
            Json::Object(map) => {
                let mut out = JsonMap::new();
                for (key, child) in map.iter().filter(|(_, child)| !child.is_null()) {
                    let mut rendered = self.render_nested(child, params, depth + 1, is_generator);
                    if is_generator && WITH_VALUES.contains(&key.as_str()) && child.get("values").is_some() {
                        rendered = self.with_late_values(child, params, depth + 1);
                    }
                    out.insert(self.text(key, params)?, rendered?);
                }
                Ok(Json::Object(out))
            }
            other => Ok(other.clone()),
        }
    }

    fn with_late_values(&self, generator: &Json, params: &Map, depth: usize) -> Result<Json, String> {
        let mut rest = generator.clone();
        let values = rest.as_object_mut().and_then(|map| map.remove("values")).unwrap_or_default();
        let mut out = self.render_nested(&rest, params, depth, true)?;
        let mut early = JsonMap::new();
        for (key, value) in values.as_object().into_iter().flatten() {
            let rendered = match value {
                Json::String(text) => self.early(text, params)?.into(),
                other => other.clone(),
            };
            early.insert(key.clone(), rendered);
        }
        out["values"] = Json::Object(early);
        Ok(out)
    }

    /// A text as far as it can be rendered now: what lacks parameters stays as it is.
    fn early(&self, text: &str, params: &Map) -> Result<String, String> {
        if !matches!(self.language, Language::Go(_)) {
            return self.text(text, params);
        }
        match self.execute(text, params, MissingKey::Error) {
            Err(TextError::Execution(error)) if error.is_missing_field => Ok(text.to_owned()),
            rendered => rendered.map_err(|error| error.message(text)),
        }
    }

    fn execute(&self, text: &str, params: &Map, missing: MissingKey) -> Result<String, TextError> {
        static FUNCTIONS: LazyLock<Arc<Functions>> = LazyLock::new(|| Arc::new(functions()));
        let mut set = TemplateSet::new(Arc::clone(&FUNCTIONS)).with_missing_key(missing);
        set.parse("base", text).map_err(TextError::Syntax)?;
        let entropy = SetEntropy { of: &self.of, text, params, seeded: OnceCell::new() };
        let env = Env { entropy: &entropy, ..self.account.env() };
        let rendered = Arc::new(set).execute("base", Value::Map(params.clone()), &env, None);
        self.account.charge_template(&env);
        rendered.map_err(TextError::Execution)
    }
}

/// Randomness that stays the same for a text of a set and its parameters: a name with `randAlphaNum` in it
/// would else be another one with every look, and the Applications of the look before be deleted.
struct SetEntropy<'a> {
    of: &'a str,
    text: &'a str,
    params: &'a Map,
    seeded: OnceCell<SeededEntropy>,
}

impl Entropy for SetEntropy<'_> {
    fn fill(&self, site: u64, buffer: &mut [u8]) {
        let seeded = || {
            let params = params::text_of(&Value::Map(self.params.clone()));
            SeededEntropy::new([self.of, self.text, &params])
        };
        self.seeded.get_or_init(seeded).fill(site, buffer);
    }

    fn deterministic(&self) -> bool {
        true
    }
}

/// Why a text of a template cannot be rendered.
enum TextError {
    Syntax(ParseError),
    Execution(ExecError),
}

impl TextError {
    /// What is said of a text.
    fn message(&self, text: &str) -> String {
        match self {
            Self::Syntax(error) => format!("failed to parse template {text}: {error}"),
            Self::Execution(error) => match error.limit.and_then(Limit::flag) {
                Some(flag) => {
                    format!("failed to execute go template {text}: {error}; {flag} raises the limit")
                }
                None => format!("failed to execute go template {text}: {error}"),
            },
        }
    }
}

/// Replaces `{{ name }}`; what is unknown, or no text, stays as it is. Braces count only where a pair of them
/// is closed in the same line; then all of them have to be.
fn replace(text: &str, params: &Map) -> Result<String, String> {
    let is_template = |line: &str| line.split_once("{{").is_some_and(|(_, rest)| rest.contains("}}"));
    if !text.split('\n').any(is_template) {
        return Ok(text.to_owned());
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("{{") {
        out.push_str(before);
        let (name, after) = inside.split_once("}}").ok_or_else(|| {
            format!(
                "invalid template: Cannot find end tag=\"}}}}\" in the template={text:?} starting from {inside:?}"
            )
        })?;
        match params.get(name.trim()) {
            Some(Value::String(value)) if !name.trim().is_empty() => out.push_str(&value),
            _ => {
                out.push_str("{{");
                out.push_str(name);
                out.push_str("}}");
            }
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Sprig without what reads the machine, and Argo CD's additions.
fn functions() -> Functions {
    let mut functions = Functions::sprig();
    for name in ["env", "expandenv", "getHostByName"] {
        functions.remove(name);
    }
    functions.insert(Function::new("normalize", &[Type::String], |_, args| {
        Ok(params::normalize(args[0].as_str().unwrap_or_default()).into())
    }));
    functions.insert(Function::variadic("slugify", &[Type::Any], |_, args| slugify(args)));
    functions.insert(Function::new("toYaml", &[Type::Any], |_, args| {
        let json = args[0].to_json().map_err(CallError::new)?;
        let text = tiphys_yaml::to_yaml(&json);
        Ok(text.strip_suffix('\n').unwrap_or(&text).into())
    }));
    functions.insert(Function::new("fromYaml", &[Type::String], |_, args| {
        from_yaml(&args[0], "map[string]interface {}", |json| match json {
            Json::Null => Some(Value::Map(Map::new())),
            json => json.is_object().then(|| params::value_of(&json)),
        })
    }));
    functions.insert(Function::new("fromYamlArray", &[Type::String], |_, args| {
        from_yaml(&args[0], "[]interface {}", |json| match json {
            Json::Null => Some(Value::list(Vec::new())),
            json => json.is_array().then(|| params::value_of(&json)),
        })
    }));
    functions
}

fn from_yaml(text: &Value, go_type: &str, wanted: impl FnOnce(Json) -> Option<Value>) -> CallResult {
    let json = tiphys_yaml::from_yaml(text.as_str().unwrap_or_default())
        .map_err(|error| CallError::new(error.to_string()))?;
    let found = match &json {
        Json::Object(_) => "object",
        Json::Array(_) => "array",
        Json::String(_) => "string",
        Json::Bool(_) => "bool",
        _ => "number",
    };
    let fail = || {
        CallError::new(format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of type {go_type}"
        ))
    };
    wanted(json).ok_or_else(fail)
}

/// `slugify [MAX [AT_WORDS]] TEXT`.
fn slugify(args: &[Value]) -> CallResult {
    let wrong = |value: &Value, wanted: &str| {
        CallError::new(format!("interface conversion: interface {{}} is {}, not {wanted}", value.type_name()))
    };
    let Some((text, options)) = args.split_last() else { return Ok("".into()) };
    let text = text.as_str().ok_or_else(|| wrong(text, "string"))?;
    let limit = match options.first() {
        None => 50,
        Some(Value::Int(limit)) => *limit,
        Some(other) => return Err(wrong(other, "int")),
    };
    let at_words = match options.get(1) {
        None => true,
        Some(Value::Bool(flag)) => *flag,
        Some(other) => return Err(wrong(other, "bool")),
    };
    params::slugify(text, limit, at_words).map(Value::from).map_err(CallError::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn renderer(spec: Json) -> Renderer {
        Renderer::for_set(&json!({ "spec": spec }))
    }

    fn set(json: Json) -> Map {
        params::from_json(json.as_object().expect("an object"))
    }

    #[test]
    fn plain_braces_count_where_they_close_in_their_line() {
        let set = set(json!({"a": "1", "n": 2}));
        let plain = renderer(json!({}));
        for (text, expected) in [
            ("{{a}}-{{ a }}-{{b}}-{{n}}-{{}}", Some("1-1-{{b}}-{{n}}-{{}}")),
            ("{{ {{a}} }}", Some("{{ {{a}} }}")),
            ("{{\na }}", Some("{{\na }}")),
            ("{{\na }}{{a}}", Some("11")),
            ("{{a}} {{", None),
            ("a }} {{ b", Some("a }} {{ b")),
        ] {
            assert_eq!(plain.text(text, &set).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_limit_names_the_flag_that_raises_it() {
        let go = renderer(json!({"goTemplate": true}));
        let told = go.text("{{ repeat 1000000000 `a` }}", &set(json!({}))).unwrap_err();
        assert!(told.ends_with("; --limit-memory raises the limit"), "{told}");
    }

    #[test]
    fn what_a_map_of_texts_lacks_is_an_empty_text() {
        let set = set(json!({"any": {"a": "1"}}));
        set.insert("texts", params::texts([("a", "1")]));
        let go = renderer(json!({"goTemplate": true}));
        let text = r#"[{{ index .texts "b" }}][{{ index .any "b" }}][{{ .texts.b }}]"#;
        assert_eq!(go.text(text, &set).as_deref(), Ok("[][<no value>][<no value>]"));
        let zero = renderer(json!({"goTemplate": true, "goTemplateOptions": ["missingkey=zero"]}));
        assert_eq!(zero.text("[{{ .texts.b }}][{{ .any.b }}]", &set).as_deref(), Ok("[][<no value>]"));
        let odd = renderer(json!({"goTemplate": true, "goTemplateOptions": ["missingkey=none"]}));
        assert_eq!(odd.text("x", &set), Err("unrecognized option: missingkey=none".into()));
    }

    #[test]
    fn yaml_in_templates_has_to_be_of_the_kind_that_is_asked_for() {
        let go = renderer(json!({"goTemplate": true}));
        let set = set(json!({"map": "a: 1000000\n", "list": "[1, x]"}));
        assert_eq!(
            go.text("{{ (fromYaml .map).a }} {{ toYaml (fromYaml .map) }}", &set).as_deref(),
            Ok("1e+06 a: 1000000")
        );
        assert_eq!(go.text("{{ index (fromYamlArray .list) 1 }}", &set).as_deref(), Ok("x"));
        assert!(go.text("{{ fromYaml .list }}", &set).is_err());
        assert!(go.text("{{ fromYamlArray .map }}", &set).is_err());
        assert_eq!(go.text("{{ slugify 7 false \"Some Long Name\" }}", &set).as_deref(), Ok("some-lo"));
        assert!(go.text("{{ slugify \"7\" \"x\" }}", &set).is_err());
    }
}
