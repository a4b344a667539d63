//! A fault that was found: what it is, what proves it, what it breaks, and what may lie below it.

use jiff::Timestamp;
use tiphys_cause::Cause;

use crate::{Evidence, Object, Remedy};

/// A candidate for a root.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) cause: Cause,
    pub(crate) object: Object,
    pub(crate) confidence: f64,
    pub(crate) summary: String,
    pub(crate) field: Option<String>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) remedy: Remedy,
    /// Objects that are red because of it, and what is red about them.
    pub(crate) suffers: Vec<(Object, String)>,
    /// Objects whose own fault, if they have one, is the cause of this.
    pub(crate) upstream: Vec<Object>,
    /// It only says that something is red: any other finding about the same object is better.
    pub(crate) is_shallow: bool,
}

/// The confidence from which on a finding is an assertion.
const ASSERTED: f64 = 0.5;

impl Finding {
    /// Whether it is an assertion, and no guess.
    pub(crate) fn is_asserted(&self) -> bool {
        self.confidence >= ASSERTED
    }

    pub(crate) fn new(cause: Cause, object: Object, confidence: f64, summary: impl Into<String>) -> Self {
        Self {
            cause,
            object,
            confidence,
            summary: summary.into(),
            field: None,
            since: None,
            evidence: Vec::new(),
            remedy: Remedy::default(),
            suffers: Vec::new(),
            upstream: Vec::new(),
            is_shallow: false,
        }
    }

    pub(crate) fn evidence(mut self, source: impl Into<String>, text: impl Into<String>) -> Self {
        let evidence = Evidence { source: source.into(), text: clipped(&text.into()) };
        if !self.evidence.contains(&evidence) {
            self.evidence.push(evidence);
        }
        self
    }

    pub(crate) fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since.or(self.since);
        self
    }

    /// What to do, in a sentence, and the commands that do it.
    pub(crate) fn remedy(mut self, text: impl Into<String>, commands: &[String]) -> Self {
        self.remedy = Remedy { text: text.into(), commands: commands.to_vec(), patch: None };
        self
    }

    pub(crate) fn patch(mut self, patch: tiphys_value::Value) -> Self {
        self.remedy.patch = Some(patch);
        self
    }

    /// A merge patch of the object, if there is one.
    pub(crate) fn change(mut self, patch: Option<tiphys_value::Value>) -> Self {
        self.remedy.patch = patch.or(self.remedy.patch);
        self
    }

    pub(crate) fn suffers(mut self, object: Object, symptom: impl Into<String>) -> Self {
        self.add_sufferer(object, symptom.into());
        self
    }

    fn add_sufferer(&mut self, object: Object, symptom: String) {
        if object != self.object && !self.suffers.iter().any(|(known, _)| *known == object) {
            self.suffers.push((object, symptom));
        }
    }

    pub(crate) fn below(mut self, object: Object) -> Self {
        if !self.upstream.contains(&object) {
            self.upstream.push(object);
        }
        self
    }

    pub(crate) fn shallow(mut self) -> Self {
        self.is_shallow = true;
        self
    }

    /// What would decide whether something lies below was not saved: it is no assertion.
    pub(crate) fn not_known(mut self) -> Self {
        self.confidence = self.confidence.min(0.45);
        self
    }

    /// Takes in another finding of the same fault: its object suffers from it.
    pub(crate) fn absorb(&mut self, other: Self, symptom: impl Into<String>) {
        let object = other.object.clone();
        self.merge(other);
        self.add_sufferer(object, symptom.into());
    }

    /// Adds what another finding of the same cause and object says.
    pub(crate) fn merge(&mut self, other: Self) {
        const MOST: usize = 12;
        for evidence in other.evidence {
            if self.evidence.len() < MOST && !self.evidence.contains(&evidence) {
                self.evidence.push(evidence);
            }
        }
        for (object, symptom) in other.suffers {
            self.add_sufferer(object, symptom);
        }
        for object in other.upstream {
            if !self.upstream.contains(&object) {
                self.upstream.push(object);
            }
        }
        if let (Some(patch), Some(more)) = (&mut self.remedy.patch, &other.remedy.patch) {
            join(patch, more);
        }
        self.since = match (self.since, other.since) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        // What tells why says more than what tells only that something is wrong.
        if self.is_shallow && !other.is_shallow && other.confidence >= self.confidence {
            (self.summary, self.remedy) = (other.summary, other.remedy);
            self.field = other.field.or(self.field.take());
        }
        self.confidence = self.confidence.max(other.confidence);
        self.is_shallow &= other.is_shallow;
    }
}

/// Adds to the lists of a patch what another patch of the same object has more.
fn join(patch: &mut tiphys_value::Value, more: &tiphys_value::Value) {
    use tiphys_value::Value;
    match (patch, more) {
        (Value::Object(patch), Value::Object(more)) => {
            for (key, value) in more {
                match patch.get_mut(key) {
                    Some(known) => join(known, value),
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(patch), Value::Array(more)) => {
            let new: Vec<Value> = more.iter().filter(|item| !patch.contains(item)).cloned().collect();
            patch.extend(new);
        }
        _ => {}
    }
}

/// A text that fits into a report, without what steers a terminal.
pub(crate) fn clipped(text: &str) -> String {
    const LONGEST: usize = 600;
    let plain = text.trim().chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c });
    let mut kept: String = plain.take(LONGEST).collect();
    if text.trim().chars().count() > LONGEST {
        kept.push('…');
    }
    kept
}
