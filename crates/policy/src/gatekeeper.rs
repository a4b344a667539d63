//! Gatekeeper's constraints whose templates are of its library (gatekeeper-library), by what the library's
//! own templates do. Templates are programs in Rego, which are not run: constraints of other kinds refuse
//! nothing.

use tiphys_value::{FieldPath, ObjectExt, Segment, Value};

use crate::{
    Refusal, Refused,
    kyverno::{is_selected, list, texts},
    request::{Namespace, Request},
    wildcard,
};

/// Namespaces that Gatekeeper leaves out by its own settings.
const NAMESPACES: [&str; 2] = ["gatekeeper-system", "kube-system"];

/// What a template finds wrong: a field of the object, and what it says.
type Fault = (FieldPath, String);

/// What a template finds wrong with an object, by the parameters of a constraint.
type Template = fn(&Value, &Value) -> Vec<Fault>;

/// The kinds of the library that are known, each with what its template refuses.
const KNOWN: [(&str, Template); 9] = [
    ("K8sRequiredLabels", |parameters, object| required(parameters, object, "labels")),
    ("K8sRequiredAnnotations", |parameters, object| required(parameters, object, "annotations")),
    ("K8sAllowedRepos", allowed_repos),
    ("K8sDisallowedTags", disallowed_tags),
    ("K8sBlockNodePort", node_port),
    ("K8sRequiredProbes", required_probes),
    ("K8sRequiredResources", required_resources),
    ("K8sPSPPrivilegedContainer", privileged),
    ("K8sPSPHostNamespace", host_namespace),
];

/// Whether constraints of a kind are evaluated.
pub(crate) fn is_known(kind: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == kind)
}

/// A constraint that is enforced and whose template is known.
#[derive(Debug)]
pub(crate) struct Constraint<'a> {
    constraint: &'a Value,
    template: Template,
}

impl<'a> Constraint<'a> {
    /// The constraint, if it refuses anything.
    pub(crate) fn from_object(constraint: &'a Value) -> Option<Self> {
        let is_enforced = matches!(constraint.str_at(&["spec", "enforcementAction"]), None | Some("deny"));
        let (_, template) = KNOWN.iter().find(|(kind, _)| *kind == constraint.kind())?;
        is_enforced.then_some(Self { constraint, template: *template })
    }

    /// Why an object is refused, or the pods that its controller makes.
    pub(crate) fn refusal(
        &self,
        request: &Request<'_>,
        pod: Option<(&Request<'_>, &FieldPath)>,
    ) -> Option<Refusal> {
        if let Some((field, message)) = self.fault(request) {
            return Some(self.refused(Refused::Object, field, message));
        }
        let (pod, path) = pod?;
        let (field, message) = self.fault(pod)?;
        Some(self.refused(Refused::Pods, FieldPath([path.0.clone(), field.0].concat()), message))
    }

    fn refused(&self, refused: Refused, field: FieldPath, message: String) -> Refusal {
        Refusal {
            policy: self.constraint.resource_key(),
            rule: String::new(),
            asked: FieldPath(["spec", "parameters"].map(|key| Segment::Key(key.to_owned())).to_vec()),
            refused,
            field: Some(field),
            message,
        }
    }

    fn fault(&self, request: &Request<'_>) -> Option<Fault> {
        let spec = &self.constraint["spec"];
        let namespace = request.object.namespace();
        if NAMESPACES.contains(&namespace) || is_meant(&spec["match"], request) != Some(true) {
            return None;
        }
        (self.template)(&spec["parameters"], &request.object).into_iter().next()
    }
}

/// Whether a constraint is about an object; `None` if labels of a namespace decide that are not known.
fn is_meant(matching: &Value, request: &Request<'_>) -> Option<bool> {
    let namespace = if request.kind() == "Namespace" { request.name() } else { request.object.namespace() };
    let named = |rule: &Value, field: &str, wanted: &str| {
        let mut names = texts(rule, field).peekable();
        names.peek().is_none() || names.any(|it| it == "*" || it == wanted)
    };
    let kinds = list(matching, "kinds");
    let is_kind = kinds.is_empty()
        || kinds
            .iter()
            .any(|it| named(it, "apiGroups", &request.gvk.group) && named(it, "kinds", request.kind()));
    let covers = |field: &str| texts(matching, field).any(|it| wildcard::matches(it, namespace));
    let is_scope = match matching.get("scope").and_then(Value::as_str) {
        Some("Namespaced") => !request.object.namespace().is_empty(),
        Some("Cluster") => request.object.namespace().is_empty(),
        _ => true,
    };
    let is_named =
        matching.get("name").and_then(Value::as_str).is_none_or(|it| wildcard::matches(it, request.name()));
    let by_labels = |field: &str, labels: &Value| {
        matching.get(field).is_none_or(|selector| is_selected(selector, labels))
    };
    let own = request.metadata("labels");
    if !is_kind
        || !is_scope
        || !is_named
        || covers("excludedNamespaces")
        || !(list(matching, "namespaces").is_empty() || covers("namespaces"))
        || !by_labels("labelSelector", own)
    {
        return Some(false);
    }
    match request.namespace {
        _ if request.kind() == "Namespace" => Some(by_labels("namespaceSelector", own)),
        Namespace::Labels(labels) => Some(by_labels("namespaceSelector", labels.unwrap_or(&Value::Null))),
        Namespace::Unknown if matching.get("namespaceSelector").is_none() => Some(true),
        Namespace::Unknown => None,
    }
}

fn path(keys: &[&str]) -> FieldPath {
    FieldPath(keys.iter().map(|key| Segment::Key((*key).to_owned())).collect())
}

/// The containers of a pod, each with its path.
fn containers(object: &Value) -> impl Iterator<Item = (FieldPath, &Value)> {
    ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(move |field| {
        let listed = object.get("spec").map(|spec| list(spec, field)).unwrap_or_default();
        listed.iter().enumerate().map(move |(at, it)| (path(&["spec", field]).index(at), it))
    })
}

fn name(container: &Value) -> &str {
    container.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Labels or annotations, by name or `{key, allowedRegex}`; a key that is there is believed to fit.
fn required(parameters: &Value, object: &Value, field: &str) -> Vec<Fault> {
    let keys = list(parameters, field).iter().filter_map(|it| it.as_str().or_else(|| it.str_at(&["key"])));
    let missing: Vec<&str> = keys.filter(|key| object.at(&["metadata", field, key]).is_none()).collect();
    match missing.is_empty() {
        true => Vec::new(),
        false => {
            vec![(path(&["metadata", field]), format!("you must provide {field}: {}", missing.join(", ")))]
        }
    }
}

fn allowed_repos(parameters: &Value, object: &Value) -> Vec<Fault> {
    let of = |(at, container): (FieldPath, &Value)| {
        let image = container.get("image").and_then(Value::as_str)?;
        let is_allowed = texts(parameters, "repos").any(|repo| image.starts_with(repo));
        let message = format!("container <{}> has an invalid image repo <{image}>", name(container));
        (!is_allowed).then(|| (at.key("image"), message))
    };
    containers(object).filter_map(of).collect()
}

fn disallowed_tags(parameters: &Value, object: &Value) -> Vec<Fault> {
    let exempt = |image: &str| texts(parameters, "exemptImages").any(|it| wildcard::matches(it, image));
    let of = |(at, container): (FieldPath, &Value)| {
        let image = container.get("image").and_then(Value::as_str).filter(|image| !exempt(image))?;
        let last = image.rsplit('/').next().unwrap_or(image);
        let message = match last.contains(':') || last.contains('@') {
            true => {
                let tag = texts(parameters, "tags").find(|tag| image.ends_with(&format!(":{tag}")))?;
                format!("container <{}> uses a disallowed tag <{image}>; disallowed: {tag}", name(container))
            }
            false => format!("container <{}> didn't specify an image tag <{image}>", name(container)),
        };
        Some((at.key("image"), message))
    };
    containers(object).filter_map(of).collect()
}

fn node_port(_: &Value, object: &Value) -> Vec<Fault> {
    let is_refused = object.kind() == "Service" && object.str_at(&["spec", "type"]) == Some("NodePort");
    let message = "User is not allowed to create service of type NodePort";
    if is_refused { vec![(path(&["spec", "type"]), message.to_owned())] } else { Vec::new() }
}

fn required_probes(parameters: &Value, object: &Value) -> Vec<Fault> {
    let main = containers(object).filter(|(at, _)| at.starts_with(&path(&["spec", "containers"])));
    let of = |(at, container): (FieldPath, &Value)| {
        let missing = texts(parameters, "probes").find(|probe| container.get(probe).is_none())?;
        Some((at.clone(), format!("Container <{}> has no <{missing}>", name(container))))
    };
    main.filter_map(of).collect()
}

fn required_resources(parameters: &Value, object: &Value) -> Vec<Fault> {
    let of = |(at, container): (FieldPath, &Value)| {
        let lacking = |kind: &str| {
            texts(parameters, kind)
                .find(|resource| container.at(&["resources", kind, resource]).is_none())
                .map(|resource| {
                    format!("container <{}> does not have {kind} for {resource}", name(container))
                })
        };
        let message = lacking("limits").or_else(|| lacking("requests"))?;
        Some((at.key("resources"), message))
    };
    containers(object).filter_map(of).collect()
}

fn privileged(parameters: &Value, object: &Value) -> Vec<Fault> {
    let exempt = |image: &str| texts(parameters, "exemptImages").any(|it| wildcard::matches(it, image));
    let of = |(at, container): (FieldPath, &Value)| {
        let is_refused = container.at(&["securityContext", "privileged"]) == Some(&Value::Bool(true))
            && !container.get("image").and_then(Value::as_str).is_some_and(exempt);
        let message = format!("Privileged container is not allowed: {}", name(container));
        is_refused.then(|| (at.key("securityContext").key("privileged"), message))
    };
    containers(object).filter_map(of).collect()
}

fn host_namespace(_: &Value, object: &Value) -> Vec<Fault> {
    let shared =
        ["hostPID", "hostIPC"].into_iter().find(|it| object.at(&["spec", it]) == Some(&Value::Bool(true)));
    let message = "Sharing the host namespace is not allowed";
    shared.map(|field| (path(&["spec", field]), message.to_owned())).into_iter().collect()
}
