//! Switches with a value, as the command lines of Go take them: `--no-hooks=false`.

use std::ffi::OsString;

use clap::{ArgAction, Command};

/// The command line without values of switches: one that is switched on stands alone, one that is switched
/// off is left out, and so is what switched it on before.
pub(crate) fn plain(arguments: Vec<OsString>, definition: impl FnOnce() -> Command) -> Vec<OsString> {
    if !arguments.iter().any(|argument| switch(argument).is_some()) {
        return arguments;
    }
    let definition = definition();
    let mut command = &definition;
    let mut plain = Vec::with_capacity(arguments.len());
    let mut arguments = arguments.into_iter();
    plain.extend(arguments.next());
    for argument in arguments.by_ref() {
        match switch(&argument).filter(|(name, _)| is_switch(command, name)) {
            Some((name, true)) => plain.push(format!("--{name}").into()),
            Some((name, false)) => {
                let on = OsString::from(format!("--{name}"));
                plain.retain(|argument| *argument != on);
            }
            None => {
                if let Some(inner) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
                    command = inner;
                }
                let is_end = argument == "--";
                plain.push(argument);
                if is_end {
                    break;
                }
            }
        }
    }
    plain.extend(arguments);
    plain
}

/// Name and value of `--name=value`, if the value is a boolean for Go.
fn switch(argument: &OsString) -> Option<(&str, bool)> {
    let (name, value) = argument.to_str()?.strip_prefix("--")?.split_once('=')?;
    match value {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some((name, true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some((name, false)),
        _ => None,
    }
}

fn is_switch(command: &Command, name: &str) -> bool {
    let has_name = |argument: &clap::Arg| {
        argument.get_long() == Some(name)
            || argument.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    };
    command
        .get_arguments()
        .any(|argument| matches!(argument.get_action(), ArgAction::SetTrue) && has_name(argument))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, arg};

    fn normalized(line: &str) -> String {
        let inner = Command::new("render")
            .arg(arg!(--"no-hooks"))
            .arg(arg!(--"include-crds").alias("crds"))
            .arg(Arg::new("set").long("set"));
        let definition = || Command::new("tiphys").subcommand(inner);
        let plain = plain(line.split(' ').map(OsString::from).collect(), definition);
        plain.iter().map(|argument| argument.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn switches_take_booleans() {
        assert_eq!(
            normalized("tiphys render x --no-hooks=false --include-crds=T"),
            "tiphys render x --include-crds"
        );
        assert_eq!(normalized("tiphys render --crds=1 --no-hooks"), "tiphys render --crds --no-hooks");
        assert_eq!(normalized("tiphys render --no-hooks x --no-hooks=f"), "tiphys render x");
        assert_eq!(normalized("tiphys render --no-hooks=f x --no-hooks"), "tiphys render x --no-hooks");
    }

    #[test]
    fn what_is_no_switch_stays() {
        for line in [
            "tiphys render --set=true",
            "tiphys --no-hooks=false",
            "tiphys render --no-hooks=maybe --include-crds",
            "tiphys render -- --no-hooks=false",
        ] {
            assert_eq!(normalized(line), line);
        }
    }
}
