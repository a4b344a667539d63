//! One thing that will break.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tiphys_diag::{Diagnostic, Edit};

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// It depends on something that the repository does not say.
    Likely,
    /// It follows from the repository alone.
    Certain,
}

/// A way to mend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What to do.
    pub description: String,
    /// The edits that do it; empty if a person has to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<Edit>,
    /// Whether the edits do what is meant for sure; where they write the word that is nearest, they guess.
    pub confidence: Confidence,
}

/// A word that may be a slip for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Respelling {
    /// The word as it stands where the finding points.
    pub wrong: String,
    /// The word that is meant.
    pub meant: String,
}

/// One thing that will break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What, where, why and what to do.
    pub diagnostic: Diagnostic,
    /// The incident of its kind, such as `A1`.
    pub incident: &'static str,
    /// The Application concerned.
    pub app: Option<String>,
    /// The object concerned: `Kind/name`, with the namespace if it has one.
    pub object: Option<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// A way to mend it.
    pub fix: Option<Fix>,
    /// A word that would mend it, of which a patch is made once the text is known.
    pub respelling: Option<Respelling>,
}

impl Finding {
    /// What makes it the same finding after lines have moved: rule, file, subject, message without digits.
    pub fn fingerprint(&self) -> String {
        let file = self.diagnostic.primary.as_ref().map(|label| label.span.file.as_ref()).unwrap_or_default();
        let message: String = self.diagnostic.message.chars().filter(|c| !c.is_ascii_digit()).collect();
        let subject = self.object.as_deref().or(self.app.as_deref()).unwrap_or_default();
        let text = format!("{}\n{file}\n{subject}\n{message}", self.diagnostic.rule);
        let hash = Sha256::digest(text);
        hash.iter().take(12).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    /// A finding that follows from the repository alone, without application, object or fix yet.
    pub fn new(incident: &'static str, diagnostic: Diagnostic) -> Self {
        Self {
            diagnostic,
            incident,
            app: None,
            object: None,
            confidence: Confidence::Certain,
            fix: None,
            respelling: None,
        }
    }

    /// The same about an Application.
    #[must_use]
    pub fn app(mut self, name: impl Into<String>) -> Self {
        self.app = Some(name.into());
        self
    }

    /// The same about an object.
    #[must_use]
    pub fn object(mut self, title: impl Into<String>) -> Self {
        self.object = Some(title.into());
        self
    }

    /// The same, but not certain.
    #[must_use]
    pub fn likely(mut self) -> Self {
        self.confidence = Confidence::Likely;
        self
    }

    /// The edits that mend it, if there are any.
    pub fn patch(&self) -> Option<&[Edit]> {
        self.fix.as_ref().map(|fix| fix.patch.as_slice()).filter(|patch| !patch.is_empty())
    }

    /// The same with a way to mend it.
    #[must_use]
    pub fn fix(mut self, description: impl Into<String>, patch: Vec<Edit>) -> Self {
        self.fix = Some(Fix { description: description.into(), patch, confidence: Confidence::Certain });
        self
    }

    /// The same with a way to mend it that is perhaps not what is meant.
    #[must_use]
    pub fn guess(mut self, description: impl Into<String>, patch: Vec<Edit>) -> Self {
        self.fix = Some(Fix { description: description.into(), patch, confidence: Confidence::Likely });
        self
    }

    /// How sure it is that the edits are what is meant: no more than the finding and the fix are.
    pub fn patch_confidence(&self) -> Confidence {
        self.fix.as_ref().map_or(self.confidence, |fix| fix.confidence.min(self.confidence))
    }

    /// The same, mended by another word in the place of one.
    #[must_use]
    pub fn with_spelling(mut self, wrong: impl Into<String>, meant: impl Into<String>) -> Self {
        self.respelling = Some(Respelling { wrong: wrong.into(), meant: meant.into() });
        self
    }

    /// The same about a word that is perhaps a slip for another: says so, and is mended by it.
    #[must_use]
    pub fn perhaps(mut self, wrong: &str, meant: Option<&str>) -> Self {
        let Some(meant) = meant else { return self };
        self.diagnostic.help.push(format!("perhaps {meant} is meant"));
        self.with_spelling(wrong, meant)
    }
}
