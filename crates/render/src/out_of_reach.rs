//! What a rendering could not have from here, read back from its error: conditions of Applications carry
//! errors as texts through the API, and a summary of many Applications tells each cause once.

/// What could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach<'a> {
    /// The request or the plugin, with what failed.
    pub text: &'a str,
    /// What failed.
    pub reason: &'a str,
}

/// What may follow on a reason: advice for one chart, and the end of what Kustomize quotes.
const ENDS: [&str; 2] = ["; or pull it into ", "': "];

/// The first thing that an error says could not be had; `None` if it is about something else.
#[must_use]
pub fn out_of_reach(error: &str) -> Option<OutOfReach<'_>> {
    // Kustomize, of a function, before which one it is.
    if let Some((_, reason)) = error.split_once("external plugins disabled; ") {
        return Some(OutOfReach { text: reason, reason });
    }
    let request = error[error.find("cannot fetch ")?..].lines().next()?;
    let text = ENDS.into_iter().fold(request, |text, end| text.split(end).next().unwrap_or(text));
    let (_, reason) = text.split_once(": ").unwrap_or(("", text));
    Some(OutOfReach { text, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_had_is_told_by_the_request() {
        let offline = "cannot fetch https://h.example.com/x: working offline";
        for error in [
            "base/kustomization.yaml:7:3: accumulating resources: helmCharts: cannot pull chart 'web' of https://h.example.com: cannot fetch https://h.example.com/x: working offline; or pull it into base/charts/web-1.0.0/web (`helm pull --untar`) and commit it",
            "accumulating resources from 'https://h.example.com/x': cannot fetch https://h.example.com/x: working offline': cannot fetch https://h.example.com/y: no",
            "missing in charts/ directory: a\ncould not get a 1.0.0: cannot fetch https://h.example.com/x: working offline\nrun without --offline",
        ] {
            let found = out_of_reach(error).expect(error);
            assert_eq!((found.text, found.reason), (offline, "working offline"));
        }
        let plugin = "a.yaml: external plugins disabled; unable to load external plugin 'Paint'";
        assert_eq!(
            out_of_reach(plugin).map(|found| found.reason),
            Some("unable to load external plugin 'Paint'")
        );
        assert_eq!(out_of_reach("no such folder"), None);
    }
}
