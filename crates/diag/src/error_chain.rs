//! Errors of others, in one line.

/// An error with its causes, each said once: many texts leave them out, and some repeat them.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let said = inner.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{error::Error, fmt};

    use super::chain;

    #[derive(Debug)]
    struct Because(&'static str, Option<Box<Self>>);

    impl fmt::Display for Because {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Because {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|inner| inner.as_ref() as _)
        }
    }

    #[test]
    fn each_cause_is_said_once() {
        let inner = Because("no route", None);
        let middle = Because("cannot connect", Some(Box::new(inner)));
        let outer = Because("failed: cannot connect", Some(Box::new(middle)));
        assert_eq!(chain(&outer), "failed: cannot connect: no route");
    }
}
