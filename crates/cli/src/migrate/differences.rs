//! The rows of the page about differences from Argo CD, as what a plan says of them.

const PAGE: &str = include_str!("../../../../docs/differences.md");

/// A row of the page: how Argo CD and Tiphys behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// What it is about.
    pub subject: &'static str,
    /// What Argo CD does; empty where there is nothing like it.
    pub argocd: &'static str,
    /// What Tiphys does.
    pub tiphys: &'static str,
}

/// The row about a subject.
pub(crate) fn row(subject: &str) -> Option<Row> {
    rows().find(|row| row.subject == subject)
}

fn rows() -> impl Iterator<Item = Row> {
    PAGE.lines().filter_map(|line| {
        let inner = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let (subject, rest) = inner.split_once(" | ")?;
        let (argocd, tiphys) = rest.split_once(" | ")?;
        Some(Row { subject, argocd: if argocd == "–" { "" } else { argocd }, tiphys })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_their_subject() {
        assert!(rows().count() > 80, "{}", rows().count());
        let row = row("`spec.sourceHydrator`").unwrap();
        assert!(row.argocd.contains("commit server") && row.tiphys.contains("hydrates nothing"), "{row:?}");
        assert_eq!(super::row("a repository that is a folder of the machine").unwrap().argocd, "");
        assert_eq!(super::row("nothing of the kind"), None);
    }
}
