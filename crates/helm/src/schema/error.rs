//! Why a value does not fit, as a tree, and how Helm prints it.

/// A fault at a place of the values. Causes are printed below it.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: Vec<String>,
    pub(crate) kind: FaultKind,
    pub(crate) causes: Vec<Fault>,
}

/// What is wrong.
#[derive(Clone, Debug)]
pub(crate) enum FaultKind {
    /// Several faults of one schema.
    Group,
    /// A `$ref` whose target does not fit: printed only if it has several causes.
    Reference(String),
    /// A sentence.
    Text(String),
}

impl Fault {
    /// A fault without causes.
    pub(crate) fn text(at: &[String], text: impl Into<String>) -> Self {
        Self { at: at.to_vec(), kind: FaultKind::Text(text.into()), causes: Vec::new() }
    }

    /// One fault for all of a schema.
    pub(crate) fn join(at: &[String], mut faults: Vec<Fault>) -> Result<(), Fault> {
        match faults.len() {
            0 => Ok(()),
            1 => Err(faults.remove(0)),
            _ => Err(Self { at: at.to_vec(), kind: FaultKind::Group, causes: faults }),
        }
    }

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
            FaultKind::Group => Some("validation failed".to_owned()),
            FaultKind::Reference(_) if self.causes.len() == 1 => None,
            FaultKind::Reference(url) => Some(format!("validation failed with '{url}'")),
            FaultKind::Text(text) => Some(text.clone()),
        };
        let below = indent + usize::from(text.is_some());
        if let Some(text) = text {
            let at: String = self.at.iter().map(|it| format!("/{}", escape(it))).collect();
            lines.push(format!("{}- at {}: {text}", "  ".repeat(indent - 1), quote(&at)));
        }
        for cause in &self.causes {
            cause.lines(below, lines);
        }
    }
}

fn escape(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}

/// A text in single quotes, escaped as Go's `%q` would inside double ones.
pub(crate) fn quote(text: &str) -> String {
    let quoted = tiphys_gocompat::strconv::quote(text);
    let inner = quoted[1..quoted.len() - 1].replace("\\\"", "\"").replace('\'', "\\'");
    format!("'{inner}'")
}
