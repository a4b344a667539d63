//! Which program a configuration asks for: its function annotation.

use serde::Deserialize;
use serde_json::Value;

use super::FunctionProgram;
use crate::{
    error::{Error, ErrorKind, Result},
    kustomization::{
        from_conformed,
        go_json::{Mode, conform},
        types,
    },
    provenance::join_clean,
    resid::ResId,
};

/// Annotations that hold a function's specification, the newer first.
const ANNOTATIONS: [&str; 2] = ["config.kubernetes.io/function", "config.k8s.io/function"];
/// Annotation that holds only an image.
const CONTAINER: &str = "config.kubernetes.io/container";
/// What every container gets.
const CONTAINER_ENV: [&str; 2] = ["LOG_TO_STDERR", "STRUCTURED_RESULTS"];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Mount {
    src: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    image: String,
    mounts: Vec<Mount>,
    envs: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Exec {
    path: String,
    args: Vec<String>,
    envs: Vec<String>,
}

/// A function's specification. Where both are given, the container counts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Spec {
    container: Container,
    exec: Exec,
}

/// Reads the specification of a configuration; `None` if it is no function's.
///
/// # Errors
/// An annotation that is none.
pub(super) fn read(config: &Value) -> Result<Option<Spec>> {
    let annotation = |name: &str| {
        let text = config.pointer("/metadata/annotations")?.get(name)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    for name in ANNOTATIONS {
        if let Some(text) = annotation(name) {
            return parse(&text, name).map(Some);
        }
    }
    if let Some(value) = config.pointer("/metadata/configFn").filter(|value| !value.is_null()) {
        return from_value(value, "configFn").map(Some);
    }
    Ok(annotation(CONTAINER)
        .map(|image| Spec { container: Container { image, ..Container::default() }, exec: Exec::default() }))
}

fn parse(text: &str, name: &str) -> Result<Spec> {
    let value = tiphys_yaml::from_yaml(text)
        .map_err(|error| fault(name, &format!("error converting YAML to JSON: {error}")))?;
    from_value(&value, name)
}

fn from_value(value: &Value, name: &str) -> Result<Spec> {
    let value = conform(value, &types::FUNCTION, Mode::LenientStrict).map_err(|misfit| {
        let text = format!("error unmarshaling JSON: while decoding JSON: {}", misfit.message);
        let error = fault(name, &text.replace("types.", "runtimeutil."));
        match misfit.advice() {
            Some(advice) => error.advise(advice),
            None => error,
        }
    })?;
    from_conformed(&value)
}

fn fault(name: &str, text: &str) -> Error {
    Error::transform(format!("failed to get FunctionSpec: {name} unmarshal error: {text}"))
}

impl Spec {
    /// The program that it asks for.
    pub(super) fn program(&self) -> Option<FunctionProgram> {
        if !self.container.image.is_empty() {
            return Some(FunctionProgram::Image(self.container.image.clone()));
        }
        (!self.exec.path.is_empty()).then(|| FunctionProgram::Executable(self.exec.path.clone()))
    }

    /// Arguments: only executables have them.
    pub(super) fn args(&self) -> Vec<String> {
        if self.container.image.is_empty() { self.exec.args.clone() } else { Vec::new() }
    }

    /// Variables with values. Names alone would hand on variables of the caller, of which none is given.
    pub(super) fn env(&self) -> Vec<(String, String)> {
        let pair =
            |text: &String| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        if self.container.image.is_empty() {
            // Values with another `=` are passed over by kustomize.
            return self
                .exec
                .envs
                .iter()
                .filter_map(pair)
                .filter(|(_, value)| !value.contains('='))
                .collect();
        }
        let usual = CONTAINER_ENV.map(|name| (name.to_owned(), "true".to_owned()));
        usual.into_iter().chain(self.container.envs.iter().filter_map(pair)).collect()
    }

    /// kustomize's rules for what containers may mount.
    ///
    /// # Errors
    /// A path that is absolute or leads out of the kustomization's folder.
    pub(super) fn check_mounts(&self, id: &ResId) -> Result<()> {
        for mount in &self.container.mounts {
            let src = &mount.src;
            let rule = if src.starts_with('/') {
                "relative to the current kustomization directory"
            } else if join_clean("", src).starts_with("..") {
                "under the current kustomization directory"
            } else {
                continue;
            };
            let text =
                format!("plugin {id} with mount path '{src}' is not permitted; mount paths must be {rule}");
            return Err(Error::new(ErrorKind::Restricted, text));
        }
        Ok(())
    }

    /// What stands in for an image is a local program, for which nothing can be mounted.
    ///
    /// # Errors
    /// There are mounts.
    pub(super) fn refuse_mounts(&self) -> Result<()> {
        if self.container.mounts.is_empty() {
            return Ok(());
        }
        let text = format!(
            "the function of image {} has mounts, and no container runs: a local program stands in for it",
            self.container.image
        );
        Err(Error::new(ErrorKind::Unsupported, text)
            .advise("it runs in a copy of the kustomization's folder: let it read its files there"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn spec(annotation: &str) -> Result<Option<Spec>, String> {
        let config = json!({"metadata": {"annotations": {"config.kubernetes.io/function": annotation}}});
        read(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn programs_and_their_variables_are_read() {
        let read = spec("exec: {path: ./f, args: [a, b c], envs: [X=1, Y=2=3, Z]}").unwrap().unwrap();
        assert_eq!(read.program(), Some(FunctionProgram::Executable("./f".into())));
        assert_eq!(read.args(), ["a", "b c"]);
        assert_eq!(read.env(), [("X".to_owned(), "1".to_owned())]);
        let read = spec("{exec: {path: f}, container: {image: i:v1, envs: [Y=2=3]}}").unwrap().unwrap();
        assert_eq!(read.program(), Some(FunctionProgram::Image("i:v1".into())));
        assert_eq!(read.env().last(), Some(&("Y".to_owned(), "2=3".to_owned())));
        assert!(spec("deferFailure: true").unwrap().unwrap().program().is_none());
        assert!(spec("").unwrap().is_none());
    }

    #[test]
    fn faults_have_kustomizes_words() {
        let fault = spec("exec: {paht: f}").unwrap_err();
        assert!(
            fault.ends_with("config.kubernetes.io/function unmarshal error: error unmarshaling JSON: while decoding JSON: json: unknown field \"paht\""),
            "{fault}"
        );
        let fault = spec("exec: {path: [a]}").unwrap_err();
        assert!(
            fault.ends_with(
                "json: cannot unmarshal array into Go struct field ExecSpec.exec.path of type string"
            ),
            "{fault}"
        );
    }
}
