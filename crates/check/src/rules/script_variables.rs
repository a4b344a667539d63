//! Variables of a container's own that its script names as `${NAME}`, where Flux replaces variables of that form
//! and takes some from what is not seen: it puts something else there, or nothing.

use std::collections::{BTreeSet, HashSet};

use tiphys_graph::{Survey, is_of_flux, survey::flux_variables};
use tiphys_value::ObjectExt;

use super::d2_unset_variable::RULE;
use crate::{
    Finding,
    support::pods::{self, list, text},
};

/// What is told of each container, with the name of the first variable.
pub(super) fn findings(flux: &Survey, given: &BTreeSet<&str>) -> Vec<(String, Finding)> {
    let takes = |object: &&tiphys_graph::Object| {
        is_of_flux(object.value())
            && object.value().at(&["spec", "postBuild", "substituteFrom"]).is_some()
    };
    let with: HashSet<(&str, &str)> = flux
        .objects
        .iter()
        .filter(takes)
        .map(|it| (it.rendered.location.file.as_ref(), it.key.name.as_str()))
        .collect();
    let is_open = |app: &&tiphys_graph::App| with.contains(&(app.declared.location.file.as_ref(), app.name()));
    let known: HashSet<_> = flux.unset_variables.iter().map(|it| (it.object, it.name.as_str())).collect();
    let mut found = Vec::new();
    for app in flux.apps.iter().filter(is_open) {
        for object in flux.objects_of(app.id) {
            let Some(pod) = pods::pod_of(object) else { continue };
            for container in pod.containers() {
                let own: BTreeSet<&str> =
                    list(container.value, "env").iter().map(|variable| text(variable, "name")).collect();
                for field in ["command", "args"] {
                    let words = list(container.value, field).iter().enumerate();
                    let script = words.filter_map(|(at, word)| Some((at, word.as_str()?)));
                    for (at, word) in script {
                        let names: BTreeSet<&str> = flux_variables(word)
                            .into_iter()
                            .filter(|name| own.contains(name) && !given.contains(name))
                            .filter(|name| !known.contains(&(object.id, *name)))
                            .collect();
                        let Some(first) = names.first() else { continue };
                        let path = container.path.key(field).index(at);
                        let all = Vec::from_iter(names.iter().copied()).join(", ");
                        let diagnostic = RULE
                            .diagnostic(format!(
                                "the script of container {} of {}/{} asks for its own {all}, and Flux replaces it before",
                                container.name(),
                                object.key.kind,
                                object.key.name
                            ))
                            .at(flux.span(object, &path), "read by Flux first")
                            .because("with postBuild, Flux replaces `${NAME}` in all that it builds; what it does not know becomes empty")
                            .help(format!("write $${{{first}}} or ${first}: both are left to the shell"));
                        let mut finding = Finding::new(RULE.incident, diagnostic).object(object.title()).likely();
                        finding.app = Some(app.name().to_owned());
                        found.push(((*first).to_owned(), finding));
                    }
                }
            }
        }
    }
    found
}
