//! Why a value does not fit, as a tree, and how Helm prints it.

use super::schema_address::single_quoted;
use tiphys_value::pointer_step;

/// A fault at a place of the values. Causes are printed below it.
#[derive(Clone, Debug)]
pub(crate) struct SchemaFault {
    pub(crate) at: Vec<String>,
    pub(crate) kind: FaultKind,
    pub(crate) causes: Vec<SchemaFault>,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub(crate) enum FaultKind {
    /// Several faults of one schema.
    Group,
    /// A reference whose target does not fit: printed only if it has several causes.
    Reference,
    /// A sentence.
    Text(String),
}

impl SchemaFault {
    /// The lines that Helm prints, without the heading of the validator.
    pub(crate) fn print(&self) -> String {
        let mut lines = Vec::new();
        match self.kind {
            FaultKind::Group => self.causes.iter().for_each(|cause| cause.lines(1, &mut lines)),
            _ => self.lines(1, &mut lines),
        }
        lines.join("\n")
    }

    fn lines(&self, indent: usize, lines: &mut Vec<String>) {
        let text = match &self.kind {
            FaultKind::Reference if self.causes.len() == 1 => None,
            FaultKind::Group | FaultKind::Reference => Some("validation failed"),
            FaultKind::Text(text) => Some(text.as_str()),
        };
        let inner = indent + usize::from(text.is_some());
        if let Some(text) = text {
            let at: String = self.at.iter().map(|it| format!("/{}", pointer_step(it))).collect();
            lines.push(format!("{}- at {}: {text}", "  ".repeat(indent - 1), single_quoted(&at)));
        }
        for cause in &self.causes {
            cause.lines(inner, lines);
        }
    }
}
