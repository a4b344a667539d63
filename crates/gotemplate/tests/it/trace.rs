//! What a tracer learns about where output came from.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use tiphys_gotemplate::{
    Env, Function, Functions, Numbers, OriginId, Site, TemplateSet, Tracer, Type, Value,
};

/// Ids are positions in `paths` plus one; a union is the set of its paths.
#[derive(Default)]
struct Recorder {
    paths: Vec<String>,
    /// Outputs with the paths that made them, by template.
    actions: Vec<(String, Range<usize>, BTreeSet<String>)>,
    templates: Vec<String>,
    controls: Vec<BTreeSet<String>>,
}

impl Recorder {
    fn id(&mut self, path: &str) -> OriginId {
        self.paths.push(path.to_owned());
        self.paths.len() as OriginId
    }

    fn names(&self, ids: &[OriginId]) -> BTreeSet<String> {
        ids.iter().flat_map(|id| self.paths[*id as usize - 1].split('+').map(str::to_owned)).collect()
    }

    /// Gives every value below an id for its path.
    fn mark(&mut self, value: &Value, path: &str) {
        if let Some(map) = value.as_map() {
            for entry in map.snapshot() {
                let below = format!("{path}.{}", entry.key);
                self.mark(&entry.value, &below);
                let id = self.id(&below);
                map.insert_with_origin(entry.key, entry.value, id);
            }
        }
        if let Some(list) = value.as_list() {
            let below: Vec<String> = (0..list.len()).map(|at| format!("{path}[{at}]")).collect();
            list.snapshot().iter().zip(&below).for_each(|(item, below)| self.mark(item, below));
            list.set_origins(below.iter().map(|below| self.id(below)).collect());
        }
    }
}

impl Tracer for Recorder {
    fn union(&mut self, ids: &[OriginId]) -> OriginId {
        let path = self.names(ids).into_iter().collect::<Vec<_>>().join("+");
        self.id(&path)
    }

    fn action(&mut self, site: Site<'_>, output: Range<usize>, reads: &[OriginId]) {
        let names = self.names(reads);
        self.actions.push((site.template.to_owned(), output, names));
    }

    fn enter_control(&mut self, _site: Site<'_>, reads: &[OriginId]) {
        let names = self.names(reads);
        self.controls.push(names);
    }

    fn enter_template(&mut self, name: &str, _call: Option<Site<'_>>, _own_buffer: bool) {
        self.templates.push(name.to_owned());
    }
}

fn trace(text: &str) -> (String, Recorder) {
    let mut functions = Functions::sprig();
    functions.insert(Function::new("include", &[Type::String, Type::Any], |ctx, args| {
        let name = args[0].as_str().unwrap_or_default().to_owned();
        Ok(ctx.execute(&name, std::mem::take(&mut args[1]))?.into())
    }));
    let mut set = TemplateSet::new(Arc::new(functions));
    set.parse("t", text).expect("the test's template parses");
    let data =
        serde_json::json!({"V": {"image": {"tag": "1", "repo": "r"}, "hosts": ["a", "b"], "on": true}});
    let data = Value::from_json(&data, Numbers::Float64);
    let mut recorder = Recorder::default();
    recorder.mark(&data, "");
    let env = Env::system();
    let output =
        Arc::new(set).execute("t", data, &env, Some(&mut recorder)).expect("the test's template runs");
    (output, recorder)
}

/// The paths behind each action of a template, joined by commas.
fn reads(text: &str) -> Vec<String> {
    let (_, recorder) = trace(text);
    let of_t = recorder.actions.iter().filter(|(template, ..)| template == "t");
    of_t.map(|(_, _, paths)| paths.iter().cloned().collect::<Vec<_>>().join(",")).collect()
}

#[test]
fn values_are_followed() {
    assert_eq!(reads("{{ .V.image.tag }}"), [".V.image.tag"]);
    assert_eq!(reads("{{ $x := .V.image }}{{ $x.tag }}"), [".V.image.tag"]);
    assert_eq!(reads("{{ $x := .V.image.tag }}a{{ $x }}"), [".V.image.tag"]);
    assert_eq!(reads("{{ with .V.image }}{{ .repo }}{{ end }}"), [".V.image.repo"]);
    assert_eq!(reads("{{ with .V.image.tag }}{{ . }}{{ end }}"), [".V.image.tag"]);
    assert_eq!(reads("{{ range .V.hosts }}{{ . }}{{ end }}"), [".V.hosts[0]", ".V.hosts[1]"]);
    assert_eq!(reads("{{ printf \"%s:%s\" .V.image.repo .V.image.tag }}"), [".V.image.repo,.V.image.tag"]);
    assert_eq!(reads("{{ $d := dict \"t\" .V.image.tag }}{{ $d.t | quote }}"), [".V.image.tag"]);
    assert_eq!(reads("{{ (merge (dict) .V.image).repo }}"), [".V.image,.V.image.repo"]);
    assert_eq!(reads("literal"), [""; 0]);
}

#[test]
fn reads_inside_includes_count_outside() {
    let define = "{{ define \"n\" }}{{ .ctx.V.image.tag }}{{ end }}";
    let (output, recorder) = trace(&format!("{define}x: {{{{ include \"n\" (dict \"ctx\" .) | quote }}}}"));
    assert_eq!(output, "x: \"1\"");
    assert_eq!(recorder.templates, ["t", "n"]);
    let (_, range, paths) = &recorder.actions[1];
    assert_eq!(&output[range.clone()], "\"1\"");
    assert!(paths.contains(".V.image.tag"));
}

#[test]
fn controls_tell_what_decided() {
    let (_, recorder) = trace("{{ if .V.on }}a{{ end }}{{ range .V.hosts }}{{ end }}");
    let paths: Vec<String> = recorder.controls.iter().flatten().cloned().collect();
    assert_eq!(paths, [".V.on", ".V.hosts", ".V.hosts"]);
}
