//! What is made of what functions give back, with a runner that is no program.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tiphys_kustomize::{
    Build, BuildOptions, Error, FunctionCall, FunctionOutput, FunctionProgram, FunctionRunner, build,
};
use tiphys_value::{ObjectExt, OriginKind};
use tiphys_vfs::MemTree;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: \"1\"\n  b: x\n";
const OTHER: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n  annotations: {n: \"1\"}\ndata: {a: b}\n";
const FUNCTION: &str = "apiVersion: example.com/v1\nkind: Fn\nmetadata:\n  name: fn\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: fn, args: [x]}\n";

type Change = dyn Fn(&mut Value) -> Option<String> + Send + Sync;

/// Runs `fn` as a change of the `ResourceList`; a text that it returns is how it failed.
struct Runner {
    change: Box<Change>,
    seen: Mutex<Vec<String>>,
}

impl FunctionRunner for Runner {
    fn find(&self, program: &FunctionProgram) -> Option<String> {
        (*program == FunctionProgram::Executable("fn".into())).then(|| "fn".into())
    }

    fn run(&self, call: &FunctionCall<'_>) -> Result<FunctionOutput, String> {
        assert_eq!(call.args, ["x"]);
        assert_eq!(call.folder, "app");
        self.seen.lock().unwrap().push(call.input.to_owned());
        let mut list = tiphys_yaml::from_yaml(call.input).unwrap();
        let failure = (self.change)(&mut list);
        Ok(FunctionOutput { output: list.to_string(), complaints: "told\n".into(), failure })
    }
}

fn run(
    kustomization: &str,
    change: impl Fn(&mut Value) -> Option<String> + Send + Sync + 'static,
) -> (Result<Build, Error>, Vec<String>) {
    let tree = MemTree::from_files([
        ("app/kustomization.yaml", kustomization),
        ("app/map.yaml", MAP),
        ("app/other.yaml", OTHER),
        ("app/fn.yaml", FUNCTION),
    ]);
    let runner = Arc::new(Runner { change: Box::new(change), seen: Mutex::default() });
    let options =
        BuildOptions { origins: true, function_runner: Some(runner.clone()), ..BuildOptions::default() };
    let built = build(&tree, "app", &options);
    let seen = runner.seen.lock().unwrap().clone();
    (built, seen)
}

fn transformed(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Result<Build, Error> {
    let text = "namePrefix: p-\nresources: [map.yaml, other.yaml]\ntransformers: [fn.yaml]\n";
    let silent = move |list: &mut Value| {
        change(list);
        None
    };
    run(text, silent).0
}

fn names(build: &Build) -> Vec<String> {
    build.objects().iter().map(|object| object.value.name().to_owned()).collect()
}

#[test]
fn fields_that_a_function_changed_name_it_before_the_file() {
    let built = transformed(|list| list["items"][0]["data"]["a"] = json!("2")).unwrap();
    let object = &built.objects()[0];
    let chain = |path: &str| {
        let chain = object.origins.lookup(&path.parse().unwrap());
        chain.iter().map(|o| (o.kind, o.location.file.to_string(), o.detail.clone())).collect::<Vec<_>>()
    };
    let manifest = (OriginKind::Manifest, "app/map.yaml".to_owned(), String::new());
    let function = (OriginKind::Transformer, "app/fn.yaml".to_owned(), "function Fn".to_owned());
    assert_eq!(chain(".data.a"), [function, manifest.clone()]);
    assert_eq!(chain(".data.b"), [manifest]);
    assert_eq!(object.value["metadata"], json!({"name": "p-one"}));
}

#[test]
fn objects_are_changed_left_out_and_added() {
    let kept = transformed(|_| ()).unwrap();
    assert_eq!(names(&kept), ["p-one", "p-two"]);
    let fewer = transformed(|list| drop(list["items"].as_array_mut().unwrap().remove(0))).unwrap();
    assert_eq!(names(&fewer), ["p-two"]);
    let more = transformed(|list| {
        let added = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}});
        list["items"].as_array_mut().unwrap().push(added);
    });
    assert_eq!(names(&more.unwrap()), ["p-one", "p-two", "new"]);
    let twice = transformed(|list| {
        let item = list["items"][0].clone();
        list["items"].as_array_mut().unwrap().push(item);
    });
    assert_eq!(
        twice.unwrap_err().to_string(),
        "plugin api: example.com/v1, kind: Fn, name: fn generated duplicate resource: {\"version\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"p-one\"}"
    );
}

#[test]
fn a_function_sees_what_kustomize_keeps_in_annotations() {
    let (built, seen) = run("namePrefix: p-\nresources: [map.yaml]\ntransformers: [fn.yaml]\n", |_| None);
    assert!(built.is_ok());
    let list = tiphys_yaml::from_yaml(&seen[0]).unwrap();
    let annotations = &list["items"][0]["metadata"]["annotations"];
    assert_eq!(annotations["internal.config.kubernetes.io/previousNames"], "one");
    assert_eq!(annotations["kustomize.config.k8s.io/id"], "kind: ConfigMap\nname: p-one\nversion: v1\n");
    assert_eq!(
        list["functionConfig"]["metadata"]["annotations"]["config.kubernetes.io/local-config"],
        "true"
    );
}

#[test]
fn generators_say_how_their_objects_are_taken() {
    let generate = |annotations: Value| {
        move |list: &mut Value| {
            list["items"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "data": {"c": "d"},
                "metadata": {"name": "one", "annotations": annotations}}]);
            None
        }
    };
    let text = "resources: [map.yaml]\ngenerators: [fn.yaml]\n";
    let merged = run(text, generate(json!({"kustomize.config.k8s.io/behavior": "merge"}))).0.unwrap();
    assert_eq!(merged.objects()[0].value["data"], json!({"a": "1", "b": "x", "c": "d"}));
    let clash = run(text, generate(json!({}))).0.unwrap_err().to_string();
    assert!(clash.contains("behavior must be merge or replace"), "{clash}");
    let hashed = run(
        "generators: [fn.yaml]\n",
        generate(json!({"kustomize.config.k8s.io/needs-hash": "true", "kept": "1"})),
    );
    let built = hashed.0.unwrap();
    assert!(names(&built)[0].starts_with("one-"));
    assert_eq!(built.objects()[0].value["metadata"]["annotations"], json!({"kept": "1"}));
    let bad = run(text, generate(json!({"kustomize.config.k8s.io/needs-hash": "maybe"}))).0.unwrap_err();
    assert_eq!(
        bad.to_string(),
        "the annotation \"kustomize.config.k8s.io/needs-hash\" contains an invalid value (\"maybe\")"
    );
}

#[test]
fn failures_tell_what_the_function_said() {
    let text = "resources: [map.yaml]\ntransformers: [fn.yaml]\n";
    let result = json!([{"message": "bad colour", "severity": "error", "resourceRef": {"kind": "ConfigMap", "name": "one"}}]);
    let given = result.clone();
    let (failed, _) = run(text, move |list| {
        list["results"] = given.clone();
        Some("exit status 3".into())
    });
    let error = failed.unwrap_err();
    assert_eq!(error.to_string(), "couldn't execute function: exit status 3 ");
    let advice = error.advice().join("\n");
    assert!(
        advice.contains("it printed: told") && advice.contains("error: bad colour (ConfigMap one)"),
        "{advice}"
    );
    // Kustomize does not look at results; they are shown.
    let (passed, _) = run(text, move |list| {
        list["results"] = result.clone();
        None
    });
    let warnings = passed.unwrap().warnings().join("\n");
    assert!(warnings.contains("error: bad colour"), "{warnings}");
}

#[test]
fn a_validator_may_change_nothing_and_is_told_why_it_cannot_pass() {
    let text = "resources: [map.yaml]\nvalidators: [fn.yaml]\n";
    let error = run(text, |_| None).0.unwrap_err();
    assert!(
        error.to_string().starts_with("validator shouldn't modify the resource map: nodes unequal"),
        "{error}"
    );
    assert!(error.advice().join("").contains("list it under `transformers`"), "{error:?}");
    let error = run(text, |list| {
        list["items"][0]["data"]["a"] = json!("2");
        None
    });
    assert!(error.0.unwrap_err().advice().is_empty());
}
