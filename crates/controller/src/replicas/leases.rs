//! The Leases by which replicas share the work, as objects of the API and as what they mean.

use std::collections::BTreeMap;

use jiff::Timestamp;
use tiphys_value::{GroupVersionKind, ObjectExt, Value, json};

use super::{
    replica::Timing,
    slots::{Slot, SlotSet, from_text, to_text},
};

/// Name of the Lease that says who has which slots; an engine that works alone holds it as its own.
pub(super) const TABLE: &str = "tiphys-controller";
/// Who holds it while replicas share the work, with the version of how they share. To an engine that shares
/// otherwise, or not at all, it is held by somebody else.
pub(super) const SCHEME: &str = "tiphys-replicas/1";
/// The annotation in which it says so.
const SLOTS: &str = "tiphys.dev/slots";
/// The annotation that says that every replica has had time to see the table since it was made.
const SETTLED: &str = "tiphys.dev/settled";
/// The label of replicas' own Leases.
const REPLICA: &str = "tiphys.dev/replica-of";
/// The name under which they are written.
pub(super) const FIELD_MANAGER: &str = "tiphys-controller";

/// The kind Lease.
pub(super) fn kind() -> GroupVersionKind {
    GroupVersionKind::new("coordination.k8s.io", "v1", "Lease")
}

fn time_now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// Which replica has which slots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// By the replica's name. Slots that nobody has are missing.
    pub owners: BTreeMap<String, SlotSet>,
    /// Whether every replica has had time to see it since it was made.
    pub is_settled: bool,
}

impl Table {
    /// Reads the table. A Lease of one that works alone has none; what cannot be read of one is nobody's.
    pub(super) fn read(lease: &Value) -> Self {
        let owners: BTreeMap<String, String> =
            lease.annotation(SLOTS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let owners = owners.into_iter().filter_map(|(member, text)| Some((member, from_text(&text)?)));
        Self { owners: owners.collect(), is_settled: lease.annotation(SETTLED) == Some("true") }
    }

    /// The slots that somebody has.
    pub(super) fn taken_slots(&self) -> SlotSet {
        self.owners.values().flatten().copied().collect()
    }

    /// The Lease that says this, in the place of the one that was read.
    pub(super) fn object(&self, namespace: &str, there: Option<&Value>, timing: &Timing) -> Value {
        let owners: BTreeMap<&String, String> = self
            .owners
            .iter()
            .filter(|(_, slots)| !slots.is_empty())
            .map(|(member, slots)| (member, to_text(slots)))
            .collect();
        let now = time_now();
        let was = there.map(|lease| lease["spec"].clone()).unwrap_or_default();
        let is_ours = was["holderIdentity"] == SCHEME;
        let transitions = was["leaseTransitions"].as_i64().unwrap_or(0);
        let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": TABLE, "namespace": namespace, "annotations": {
                SLOTS: json!(owners).to_string(), SETTLED: self.is_settled.to_string()}},
            "spec": {"holderIdentity": SCHEME, "leaseDurationSeconds": timing.group.as_secs(), "renewTime": now,
                "acquireTime": if is_ours { was["acquireTime"].clone() } else { now.into() },
                "leaseTransitions": if is_ours || there.is_none() { transitions } else { transitions + 1 }}});
        if let Some(there) = there {
            follow(&mut lease, there);
        }
        lease
    }
}

/// Lets a write follow what was read alone. An API server makes a Lease anew that is written and not there,
/// whatever version it bears, but for one with a uid.
fn follow(lease: &mut Value, there: &Value) {
    lease["metadata"]["resourceVersion"] = there.resource_version().into();
    lease["metadata"]["uid"] = there.uid().into();
}

/// The replica that has an Application, as the Lease `tiphys-controller` says: the name of its own Lease.
/// `None` if none has it now, or an engine that works alone has all.
pub fn replica_of(lease: &Value, app: &Value) -> Option<String> {
    let slot = Slot::of_application(app);
    let owners = Table::read(lease).owners.into_iter();
    owners.filter(|(_, slots)| slots.contains(&slot)).map(|(member, _)| member).next()
}

/// Who holds the Lease of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// Replicas that share as this one does.
    Replicas,
    /// Nobody.
    Nobody,
    /// An engine that works alone, or replicas that share otherwise.
    Other(String),
}

impl Holder {
    pub(super) fn read(lease: &Value) -> Self {
        match lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default() {
            SCHEME => Self::Replicas,
            "" => Self::Nobody,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A replica's own Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, which no other replica has or had.
    pub name: String,
    /// It was told that its Lease has expired: it does not come back.
    pub is_evicted: bool,
    pub object: Value,
}

impl Member {
    /// Reads a replica's Lease; `None` if it is another one.
    pub(super) fn read(lease: &Value) -> Option<Self> {
        lease.label(REPLICA).filter(|table| *table == TABLE)?;
        let holder = lease.str_at(&["spec", "holderIdentity"]).unwrap_or_default();
        let name = lease.name().to_owned();
        Some(Self { is_evicted: holder != name, name, object: lease.clone() })
    }

    /// The Lease of a replica that was read, or a new one.
    pub(super) fn renewed(namespace: &str, name: &str, there: Option<&Value>, timing: &Timing) -> Value {
        let now = time_now();
        let since = there.map(|lease| lease["spec"]["acquireTime"].clone());
        let mut lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "namespace": namespace, "labels": {REPLICA: TABLE}},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": timing.holds.as_secs(), "renewTime": now,
                "acquireTime": since.unwrap_or_else(|| now.into())}});
        if let Some(there) = there {
            follow(&mut lease, there);
        }
        lease
    }

    /// The Lease after it has expired. A renewal that comes later is refused: the Lease bears its version.
    pub(super) fn evicted(&self) -> Value {
        let mut lease = self.object.clone();
        lease["spec"]["holderIdentity"] = "".into();
        lease
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_back_from_its_lease() {
        let slots: SlotSet = Slot::all().take(5).collect();
        let owners = BTreeMap::from([("a".to_owned(), slots), ("b".to_owned(), SlotSet::new())]);
        let table = Table { owners, is_settled: true };
        let there = json!({"metadata": {"resourceVersion": "7"},
            "spec": {"holderIdentity": "alone", "leaseTransitions": 1}});
        assert_eq!(Holder::read(&there), Holder::Other("alone".to_owned()));
        let lease = table.object("argocd", Some(&there), &Timing::default());
        assert_eq!((lease.resource_version(), &lease["spec"]["leaseTransitions"]), ("7", &json!(2)));
        assert_eq!(Holder::read(&lease), Holder::Replicas);
        let read = Table::read(&lease);
        assert_eq!((read.owners["a"].len(), read.taken_slots().len(), read.is_settled), (5, 5, true));
        assert!(!read.owners.contains_key("b"), "who has nothing is not told of");
    }

    #[test]
    fn what_cannot_be_read_of_a_table_is_nobodys() {
        for text in ["", "[]", "{", r#"{"a": 1}"#, r#"{"a": "ff"}"#, r#"{"a": "xyz"}"#] {
            let lease = json!({"metadata": {"annotations": {SLOTS: text}}});
            assert_eq!(Table::read(&lease), Table::default(), "{text}");
        }
    }

    #[test]
    fn a_replica_that_was_evicted_is_told_from_one_that_lives() {
        let lease = Member::renewed("argocd", "tiphys-a", None, &Timing::default());
        let member = Member::read(&lease).expect("one of ours");
        assert!(!member.is_evicted);
        assert!(Member::read(&member.evicted()).expect("still one of ours").is_evicted);
        assert_eq!(Member::read(&json!({"metadata": {"name": "other"}})), None);
    }
}
