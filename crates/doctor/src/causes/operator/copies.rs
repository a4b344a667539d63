//! Resources that repeat what another one says: owners that quote what they made, and siblings that fail
//! alike.

use std::collections::BTreeMap;

use tiphys_cause::Cause;
use tiphys_value::ObjectExt as _;

use super::{condition_words::own_words, lookup::operators};
use crate::{
    Object,
    cluster::{controller, is_workload},
    dependencies,
    finding::Finding,
    search_context::Look,
};

/// Causes that are told by the words of a resource itself.
const TOLD: &[Cause] = &[
    Cause::OperatorRejected,
    Cause::OperatorReference,
    Cause::OperatorCloudCredentials,
    Cause::ScheduleAutoscaler,
    Cause::GitopsSourceAuth,
    Cause::ExternalDown,
];
/// Words that are too few to tell whether two resources mean the same.
const FEWEST: usize = 3;
/// Letters and digits from which on a word is an identity, and differs from one request to the next.
const IDENTITY: usize = 8;
/// How far owners are followed.
const FARTHEST: usize = 6;

/// How many resources that say the same are held against each other: more of them tell nothing more.
const MOST_ALIKE: usize = 64;

/// Lets what only repeats another resource follow from it.
pub(super) fn fold(look: &Look<'_>, mut found: Vec<Finding>) -> Vec<Finding> {
    let told: Vec<Option<String>> = found.iter().map(|finding| told_words(look, finding)).collect();
    let mut alike: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, words) in told.iter().enumerate() {
        alike.entry(words.as_deref().unwrap_or_default()).or_default().push(at);
    }
    alike.remove("");
    // Who quotes what it has made has no fault of its own.
    for group in alike.values() {
        let places: BTreeMap<Object, usize> =
            group.iter().map(|at| (found[*at].object.clone(), *at)).collect();
        for made in group {
            let owner = look.cluster.live(&found[*made].object).and_then(controller);
            let Some(owner) = owner.filter(|owner| places.contains_key(owner)) else { continue };
            let above = places[&owner];
            found[above].upstream = vec![found[*made].object.clone()];
            found[*made].upstream.retain(|it| *it != owner);
        }
    }
    // Of siblings that fail alike one tells it all.
    let mut into: BTreeMap<usize, usize> = BTreeMap::new();
    for group in alike.values() {
        let mut kept: Vec<usize> = Vec::new();
        for at in group {
            match kept.iter().take(MOST_ALIKE).find(|known| is_one(look, &found[**known], &found[*at])) {
                Some(known) => {
                    into.insert(*at, *known);
                }
                None => kept.push(*at),
            }
        }
    }
    let mut kept: BTreeMap<usize, Finding> = BTreeMap::new();
    for (at, finding) in found.into_iter().enumerate() {
        match into.get(&at).and_then(|known| kept.get_mut(known)) {
            Some(known) => known.absorb(finding, "fails alike"),
            None => {
                kept.insert(at, finding);
            }
        }
    }
    kept.into_iter().map(|(at, finding)| at_login(look, finding, told[at].as_deref())).collect()
}

/// Whether two resources that say the same have one fault.
fn is_one(look: &Look<'_>, known: &Finding, finding: &Finding) -> bool {
    let (one, two) = (&known.object, &finding.object);
    known.cause == finding.cause
        && (one.kind == two.kind && are_siblings(look, one, two)
            || finding.cause == Cause::OperatorCloudCredentials && operator_of_both(look, one, two).is_some())
}

/// Moves a finding about several siblings to the resource by which all of them log in, if words about a login
/// are what they say and nobody gets in by it.
fn at_login(look: &Look<'_>, finding: Finding, words: Option<&str>) -> Finding {
    const WORDS: &[&str] = &["auth", "login", "credential", "token", "role name", "permission denied"];
    let kind = &finding.object.kind;
    let siblings: Vec<Object> = look.cluster.all(kind).iter().map(|it| Object::from_live(it)).collect();
    let tells = words.is_some_and(|words| {
        let low = words.to_ascii_lowercase();
        WORDS.iter().any(|word| low.contains(word))
    });
    let is_alike = |it: &Object| it.kind == *kind || operator_of_both(look, &finding.object, it).is_some();
    let alike = finding.suffers.iter().filter(|(it, _)| is_alike(it)).count();
    if !tells || alike == 0 {
        return finding;
    }
    let is_login = |it: &Object| {
        let is_custom = look.cluster.live(it).is_some_and(super::is_custom);
        is_custom && it.kind != *kind && !owns_any(look, it, &siblings)
    };
    let mut named = dependencies::upstream(look.cluster, &finding.object).into_iter().filter(is_login);
    let Some(login) = named.next() else { return at_operator(look, finding) };
    let users = siblings.iter().filter(|it| dependencies::upstream(look.cluster, it).contains(&login));
    if users.clone().count() < 2 || !users.clone().all(|it| look.is_red(it)) {
        return finding;
    }
    let first = finding.object.clone();
    let mut finding = finding;
    finding.cause = match finding.cause {
        Cause::OperatorCloudCredentials => Cause::OperatorCloudCredentials,
        _ => Cause::ConfigCredentials,
    };
    finding.summary = format!("nobody gets in by {login}: {}", finding.summary);
    finding.upstream.retain(|it| *it != login);
    finding.object = login;
    finding.suffers(first, "cannot log in")
}

/// The operator that cares for two resources.
fn operator_of_both(look: &Look<'_>, one: &Object, two: &Object) -> Option<Object> {
    let of =
        |object: &Object| look.cluster.live(object).map(|live| operators(look, live)).unwrap_or_default();
    let others = of(two);
    of(one).into_iter().find(|it| others.contains(it))
}

/// Moves a finding about several resources, none of which names a login, to the operator whose own login the
/// cloud refuses.
fn at_operator(look: &Look<'_>, finding: Finding) -> Finding {
    let mut others = finding.suffers.iter().map(|(it, _)| it);
    let operator = others.find_map(|it| operator_of_both(look, &finding.object, it));
    let Some(operator) = operator.filter(|_| finding.cause == Cause::OperatorCloudCredentials) else {
        return finding;
    };
    let first = finding.object.clone();
    let mut finding = finding;
    finding.summary = format!("the cloud does not let {operator} in: {}", finding.summary);
    finding.upstream.retain(|it| *it != operator);
    finding.object = operator;
    finding.suffers(first, "is refused by the cloud")
}

/// Whether a resource has made one of some others.
fn owns_any(look: &Look<'_>, owner: &Object, others: &[Object]) -> bool {
    others.iter().any(|it| look.cluster.live(it).and_then(controller).is_some_and(|it| it == *owner))
}

/// What a resource says of itself, without its own name and what differs from one request to the next.
fn told_words(look: &Look<'_>, finding: &Finding) -> Option<String> {
    let live = look.cluster.live(&finding.object)?;
    if !TOLD.contains(&finding.cause) || !finding.is_asserted() {
        return None;
    }
    let own = own_words(live);
    let warning = look.cluster.events(&finding.object).rfind(|event| event.is_warning());
    let words = if own.is_empty() { warning.map_or(own, |event| event.message.clone()) } else { own };
    let masked: Vec<&str> = words
        .split_whitespace()
        .map(|word| if word.contains(live.name()) || is_identity(word) { "*" } else { word })
        .collect();
    (masked.len() >= FEWEST).then(|| masked.join(" "))
}

/// Whether a word is the identity of a request.
fn is_identity(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    word.len() >= IDENTITY && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

/// What a resource belongs to in the end.
fn top(look: &Look<'_>, object: &Object) -> Object {
    let mut top = object.clone();
    for _ in 0..FARTHEST {
        match look.cluster.live(&top).and_then(controller) {
            Some(owner) => top = owner,
            None => break,
        }
    }
    top
}

/// Whether two resources belong to the same one, or name the same one.
fn are_siblings(look: &Look<'_>, one: &Object, two: &Object) -> bool {
    let (first, second) = (top(look, one), top(look, two));
    if first == second && first != *one {
        return true;
    }
    let named = |object: &Object| {
        let named = dependencies::upstream(look.cluster, object).into_iter();
        let is_shared = |it: &Object| {
            !is_workload(&it.kind) && !matches!(it.kind.as_str(), "Pod" | "ServiceAccount" | "Namespace")
        };
        named.filter(|it| is_shared(it)).collect::<Vec<_>>()
    };
    let others = named(two);
    named(one).iter().any(|it| others.contains(it)) || share_login(look, one, two)
}

/// Whether two resources of a namespace name the same Secret by its name alone, as `clientSecretName`.
fn share_login(look: &Look<'_>, one: &Object, two: &Object) -> bool {
    let logins = |object: &Object| {
        let spec = look.cluster.live(object).and_then(|live| live.get("spec")?.as_object());
        let fields = spec.into_iter().flatten().filter(|(key, _)| key.ends_with("SecretName"));
        fields.filter_map(|(_, value)| value.as_str()).collect::<Vec<_>>()
    };
    let others = logins(two);
    one.namespace == two.namespace && logins(one).iter().any(|it| others.contains(it))
}

#[cfg(test)]
mod tests {
    use super::is_identity;

    #[test]
    fn identities_of_requests() {
        for word in ["3a5f-77e0-9bc1", "8f1dc0ffee,", "(1f7d6a3b)"] {
            assert!(is_identity(word), "{word}");
        }
        for word in ["ami-0dead", "rejected", "postgres", "3a"] {
            assert!(!is_identity(word), "{word}");
        }
    }
}
