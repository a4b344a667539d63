//! Events as `kubectl get events` prints them: a table, with or without the namespace and the wide columns.

use super::Event;
use crate::Object;

/// The columns of a table, each with the place at which it begins.
struct Columns(Vec<(String, usize)>);

/// Titles that consist of two words.
const TWO_WORDS: &[(&str, &str)] = &[("LAST", "SEEN"), ("FIRST", "SEEN")];

impl Columns {
    fn read(line: &str) -> Option<Self> {
        let mut found: Vec<(String, usize)> = Vec::new();
        let mut at = 0;
        for word in line.split_whitespace() {
            at += line.get(at..)?.find(word)?;
            match found.last_mut() {
                Some((title, _)) if TWO_WORDS.contains(&(title.as_str(), word)) => title.push_str(" SEEN"),
                _ => found.push((word.to_owned(), at)),
            }
            at += word.len();
        }
        let has = |title: &str| found.iter().any(|(known, _)| known == title);
        (has("REASON") && has("MESSAGE") && (has("OBJECT") || has("KIND"))).then_some(Self(found))
    }

    /// The text of a column in a line.
    fn text<'a>(&self, line: &'a str, title: &str) -> &'a str {
        let Some(place) = self.0.iter().position(|(known, _)| known == title) else { return "" };
        let start = self.0[place].1;
        let end = self.0.get(place + 1).map_or(line.len(), |(_, start)| *start);
        line.get(start..end.min(line.len())).unwrap_or_default().trim()
    }
}

/// Whether a text begins with the titles of such a table.
pub(super) fn is_table(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| Columns::read(line).is_some())
}

/// The events of a table. How long ago they were is left open: nobody knows when the table was printed.
pub(super) fn parse(text: &str) -> Vec<Event> {
    let mut columns: Option<Columns> = None;
    let mut found: Vec<Event> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(read) = Columns::read(line) {
            columns = Some(read);
            continue;
        }
        let Some(columns) = &columns else { continue };
        let object = columns.text(line, "OBJECT");
        let Some((kind, name)) = object.split_once('/') else {
            // The words of an event may go on in the next line.
            if let Some(event) = found.last_mut() {
                event.message = format!("{} {}", event.message, line.trim());
            }
            continue;
        };
        found.push(Event {
            object: Object::new(&kind_of_word(kind), columns.text(line, "NAMESPACE"), name),
            kind: columns.text(line, "TYPE").to_owned(),
            reason: columns.text(line, "REASON").to_owned(),
            message: columns.text(line, "MESSAGE").to_owned(),
            count: columns.text(line, "COUNT").parse().unwrap_or(1),
            source: columns.text(line, "SOURCE").split(',').next().unwrap_or_default().to_owned(),
            ..Event::default()
        });
    }
    found
}

/// The kinds that kubectl prints in small letters.
const KINDS: &[&str] = &[
    "Pod",
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
    "Node",
    "Service",
    "Ingress",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "Namespace",
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "ReplicationController",
    "Certificate",
    "CertificateRequest",
    "ExternalSecret",
    "SecretStore",
    "ClusterSecretStore",
    "HelmRelease",
    "Kustomization",
    "GitRepository",
    "HelmRepository",
    "HelmChart",
    "OCIRepository",
    "Application",
    "NodeClaim",
    "NodePool",
    "ScaledObject",
    "VolumeSnapshot",
    "Endpoints",
    "EndpointSlice",
    "NetworkPolicy",
    "Gateway",
    "HTTPRoute",
    "Machine",
];

/// The kind that a word in small letters, with or without its group, means.
fn kind_of_word(word: &str) -> String {
    let plain = word.split('.').next().unwrap_or(word);
    let known = KINDS.iter().find(|kind| kind.eq_ignore_ascii_case(plain));
    known.map_or_else(|| plain.to_owned(), |kind| (*kind).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_one_and_of_all_namespaces() {
        let text = "NAMESPACE   LAST SEEN   TYPE      REASON             OBJECT          MESSAGE\n\
                    shop        3m5s        Warning   BackOff            pod/web-1       Back-off restarting failed container\n\
                    shop        8m          Normal    ScalingReplicaSet  deployment/web  Scaled up replica set web-1 to 2\n";
        assert!(is_table(text));
        let events = parse(text);
        assert_eq!(events[0].object, Object::new("Pod", "shop", "web-1"));
        assert_eq!((events[0].kind.as_str(), events[0].reason.as_str()), ("Warning", "BackOff"));
        assert_eq!(events[1].object.kind, "Deployment");
        let one = "LAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n2m   Warning\n";
        assert!(is_table(one) && parse(one).is_empty());
        assert!(!is_table("ERROR reason unknown\n"));
    }
}
