//! Release names made from a template (`--name-template`).

use std::sync::Arc;

use tiphys_gotemplate::{Env, Functions, TemplateSet, Value};

use crate::HelmError;

/// The name that Helm gives to the text.
const TEMPLATE: &str = "name-template";

/// The release name that a template makes, which may call Go's and Sprig's functions and sees no data.
/// Functions that would look at the machine (`env`, `expandenv`, `getHostByName`) are not defined.
///
/// # Errors
/// The text does not parse or fails, in Go's words.
pub fn name_from_template(text: &str) -> Result<String, HelmError> {
    let mut functions = Functions::sprig();
    ["env", "expandenv", "getHostByName"].into_iter().for_each(|name| functions.remove(name));
    let mut set = TemplateSet::new(Arc::new(functions)).with_root_name(TEMPLATE);
    set.parse(TEMPLATE, text).map_err(|error| HelmError::Option(error.to_string()))?;
    Arc::new(set)
        .execute(TEMPLATE, Value::NoValue, &Env::system(), None)
        .map_err(|error| HelmError::Option(error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_functions_and_fails_as_go_does() {
        assert_eq!(name_from_template("{{ \"Foo\" | lower }}-{{ add 1 2 }}").unwrap(), "foo-3");
        assert_eq!(name_from_template("plain").unwrap(), "plain");
        let error = name_from_template("{{ env \"HOME\" }}").unwrap_err().to_string();
        assert_eq!(error, "template: name-template:1: function \"env\" not defined");
        assert!(
            name_from_template("{{ fail \"no\" }}")
                .unwrap_err()
                .to_string()
                .ends_with("error calling fail: no")
        );
    }
}
