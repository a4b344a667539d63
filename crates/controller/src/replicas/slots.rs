//! Slots: the parts into which Applications and ApplicationSets fall, and which replica should have which.
//!
//! Pure: every replica comes to the same answer from the same names.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{SHA256, digest};
use tiphys_model::Destination;
use tiphys_value::{ObjectExt, Value};

use crate::{AppKey, settings::is_own};

/// How many slots Applications fall into. All replicas have to agree on it: see `leases::SCHEME`.
const HASHED: u16 = 256;

/// A part of the work that one replica has as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Slot(u16);

/// Slots.
pub(crate) type SlotSet = BTreeSet<Slot>;

impl Slot {
    /// What only one replica may do and what belongs to no Application: whoever has this slot does it.
    pub(super) const EXCLUSIVE: Self = Self(HASHED);

    /// All slots.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..=HASHED).map(Self)
    }

    /// The slot of an Application. Those of another cluster are together, so that one replica alone follows
    /// that cluster; those of the engine's own cluster, which every replica follows, are divided.
    pub(super) fn of_application(app: &Value) -> Self {
        let field = |name: &str| app.str_at(&["spec", "destination", name]).unwrap_or_default().to_owned();
        let destination =
            Destination { server: field("server"), name: field("name"), namespace: String::new() };
        let cluster = match destination.server.trim_end_matches('/') {
            "" => destination.name.as_str(),
            server => server,
        };
        if cluster.is_empty() || is_own(&destination) {
            return Self::hashed(&["application", app.namespace(), app.name()]);
        }
        Self::hashed(&["cluster", cluster])
    }

    /// The slot of an ApplicationSet.
    pub(super) fn of_set(key: &AppKey) -> Self {
        Self::hashed(&["set", &key.namespace, &key.name])
    }

    fn hashed(words: &[&str]) -> Self {
        Self(u16::try_from(hash(words) % u64::from(HASHED)).unwrap_or_default())
    }
}

/// A number that is the same in every version and on every machine.
fn hash(words: &[&str]) -> u64 {
    let text = words.join("\0");
    let digest = digest(&SHA256, text.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest.as_ref()[..8]);
    u64::from_be_bytes(first)
}

/// Which member should have each slot: the one that hashes highest with it, so that a member that comes takes
/// slots from all others, and those of one that goes fall to all others; no other slot moves.
pub(crate) fn divided<'m>(members: impl IntoIterator<Item = &'m str> + Clone) -> BTreeMap<Slot, &'m str> {
    let owner = |slot: Slot| {
        let rated = members.clone().into_iter().map(|member| (hash(&[&slot.0.to_string(), member]), member));
        rated.max().map(|(_, member)| (slot, member))
    };
    Slot::all().filter_map(owner).collect()
}

/// Slots as text: one bit for each, four to a hexadecimal digit, the first slot first.
pub(crate) fn to_text(slots: &SlotSet) -> String {
    let all: Vec<Slot> = Slot::all().collect();
    let digit = |four: &[Slot]| {
        let bits = four.iter().enumerate().map(|(at, slot)| u32::from(slots.contains(slot)) << (3 - at));
        char::from_digit(bits.sum(), 16).unwrap_or('0')
    };
    all.chunks(4).map(digit).collect()
}

/// Slots from text; `None` if it is none.
pub(crate) fn from_text(text: &str) -> Option<SlotSet> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let all: Vec<Slot> = Slot::all().collect();
    if digits.len() != all.chunks(4).len() {
        return None;
    }
    let set = all.chunks(4).zip(digits).flat_map(|(four, digit)| {
        four.iter().enumerate().filter(move |(at, _)| digit & (8 >> at) != 0).map(|(_, slot)| *slot)
    });
    Some(set.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_value::json;

    fn app(name: &str, destination: Value) -> Value {
        json!({"metadata": {"namespace": "argocd", "name": name}, "spec": {"destination": destination}})
    }

    fn counts(members: &[&str]) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (_, member) in divided(members.iter().copied()) {
            *counts.entry(member.to_owned()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn applications_of_another_cluster_are_together_and_those_of_the_own_are_divided() {
        let slot = |name: &str, destination: Value| Slot::of_application(&app(name, destination));
        let remote = json!({"server": "https://prod.example.com/"});
        assert_eq!(slot("a", remote.clone()), slot("b", json!({"server": "https://prod.example.com"})));
        assert_eq!(slot("a", json!({"name": "prod"})), slot("b", json!({"name": "prod"})));
        let own = ["https://kubernetes.default.svc", "https://kubernetes.default.svc/"];
        let names: Vec<String> = (0..100).map(|number| format!("app-{number}")).collect();
        let slots: SlotSet = names.iter().map(|name| slot(name, json!({"server": own[0]}))).collect();
        assert!(slots.len() > 70, "{}", slots.len());
        for name in &names {
            let of_own = slot(name, json!({"server": own[0]}));
            assert_eq!(of_own, slot(name, json!({"server": own[1]})));
            assert_eq!(of_own, slot(name, json!({"name": "in-cluster"})));
            assert_eq!(
                of_own,
                slot(name, Value::Null),
                "one whose destination is missing is told of by somebody"
            );
            assert!(of_own < Slot::EXCLUSIVE);
        }
    }

    #[test]
    fn members_have_about_the_same() {
        for count in 1..=6 {
            let names: Vec<String> = (0..count).map(|number| format!("tiphys-controller-{number}")).collect();
            let members: Vec<&str> = names.iter().map(String::as_str).collect();
            let counts = counts(&members);
            let fair = Slot::all().count() / count;
            assert_eq!(counts.len(), count);
            for (member, slots) in counts {
                assert!(slots * 2 > fair && slots < fair * 2, "{member} of {count} has {slots}, not {fair}");
            }
        }
        assert!(divided([]).is_empty());
    }

    #[test]
    fn only_what_a_member_takes_or_leaves_moves() {
        let (three, two) = (["a", "b", "c"], ["a", "c"]);
        let (with, without) = (divided(three), divided(two));
        let moved = Slot::all().filter(|slot| with[slot] != without[slot]).count();
        let of_b = with.values().filter(|member| **member == "b").count();
        assert_eq!(moved, of_b, "what the others had stays with them");
        let other_order = divided(["c", "b", "a"]);
        assert_eq!(with, other_order);
    }

    #[test]
    fn slots_are_read_back_from_their_text() {
        let some: SlotSet = Slot::all().filter(|slot| slot.0 % 7 == 3 || *slot == Slot::EXCLUSIVE).collect();
        for set in [SlotSet::new(), some, Slot::all().collect()] {
            let text = to_text(&set);
            assert_eq!(from_text(&text), Some(set), "{text}");
        }
        for wrong in ["", "0", "zz", &"0".repeat(66), "ffffffff"] {
            assert_eq!(from_text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_slot_is_the_same_in_every_version() {
        // A version that hashes otherwise needs another `leases::SCHEME`.
        let destination = json!({"name": "in-cluster"});
        assert_eq!(Slot::of_application(&app("shop", destination)), Slot(206));
        assert_eq!(divided(["a", "b"])[&Slot(206)], "a");
    }
}
