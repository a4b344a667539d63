//! Programs that need no container to be foreseen: those that only sleep, print and exit. Whoever writes
//! `sh -c "sleep 5; exit 1"` says how long it runs and how it ends; any other program is for the rules.

use std::time::Duration;

use serde_json::Value;
use tiphys_value::ObjectExt;

const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];
/// What would make a statement mean more than its words.
const SYNTAX: [char; 14] = ['$', '`', '|', '&', '<', '>', '(', ')', '{', '}', '*', '?', '[', '\\'];

/// When and how a program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// After so long; never if `None`.
    pub after: Option<Duration>,
    /// Exit code.
    pub code: i32,
}

/// How the program of a container ends, if its command line says so.
pub(super) fn end_of(container: &Value) -> Option<End> {
    let words = |field: &str| container.at(&[field]).and_then(Value::as_array).into_iter().flatten();
    let line: Option<Vec<&str>> = words("command").chain(words("args")).map(Value::as_str).collect();
    let line = line?;
    // Without a command the image decides what is run with the arguments.
    if words("command").next().is_none() {
        let image = container.str_at(&["image"]).unwrap_or_default();
        return is_pause(image).then_some(End { after: None, code: 0 });
    }
    match line.as_slice() {
        [shell, flags, script] if SHELLS.contains(&base_name(shell)) && is_script_flag(flags) => run(script),
        words => {
            let mut end = End { after: Some(Duration::ZERO), code: 0 };
            step(&mut end, words)?;
            Some(end)
        }
    }
}

/// Whether an image is the one that every pod's own container is made of: it waits to be told to end.
fn is_pause(image: &str) -> bool {
    let name = base_name(image.split('@').next().unwrap_or(image));
    name.split(':').next() == Some("pause")
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// `-c`, also with flags that change nothing here: `-ec`, `-euxc`.
fn is_script_flag(flags: &str) -> bool {
    flags
        .strip_prefix('-')
        .and_then(|flags| flags.strip_suffix('c'))
        .is_some_and(|rest| rest.chars().all(|flag| "eux".contains(flag)))
}

fn run(script: &str) -> Option<End> {
    let joined = script.replace("&&", ";");
    let mut statements =
        joined.split([';', '\n']).filter(|statement| !statement.trim().is_empty()).peekable();
    let mut end = End { after: Some(Duration::ZERO), code: 0 };
    while let Some(statement) = statements.next() {
        if statement.contains(SYNTAX) {
            return None;
        }
        let words: Vec<&str> = statement.split_whitespace().collect();
        if is_endless(&words) {
            let mut body = statements.map(|statement| statement.trim()).take_while(|it| *it != "done");
            return body.all(goes_on).then_some(End { after: None, code: 0 });
        }
        if step(&mut end, &words)? || end.after.is_none() {
            return Some(end);
        }
        // After a failure `&&` and `-e` go another way than `;`: only at the end of a script it is plain.
        if end.code != 0 && statements.peek().is_some() {
            return None;
        }
    }
    Some(end)
}

/// Whether a loop begins that only what is in it can end.
fn is_endless(words: &[&str]) -> bool {
    matches!(words, ["while", "true" | ":"] | ["until", "false"])
}

/// Whether a statement in a loop is known not to end it.
fn goes_on(statement: &str) -> bool {
    let mut end = End { after: Some(Duration::ZERO), code: 0 };
    let words: Vec<&str> = statement.split_whitespace().skip_while(|word| *word == "do").collect();
    let is_plain = !statement.contains(SYNTAX);
    words.is_empty() || is_plain && step(&mut end, &words) == Some(false) && end.code == 0
}

/// Takes one statement; says whether the program ends with it. `None` if it is not known.
fn step(end: &mut End, words: &[&str]) -> Option<bool> {
    let (command, rest) = words.split_first()?;
    end.code = 0;
    match (base_name(command), rest) {
        ("sleep", ["infinity" | "inf"]) => end.after = None,
        ("sleep", times) if !times.is_empty() => {
            for time in times {
                end.after = end.after.zip(seconds(time)?).map(|(sum, more)| sum.saturating_add(more));
            }
        }
        ("exit", [code]) => {
            end.code = i32::from(code.parse::<u8>().ok()?);
            return Some(true);
        }
        ("exit", []) => return Some(true),
        ("false", []) => end.code = 1,
        // What is done at a signal is done when it comes.
        ("true" | ":", []) | ("echo" | "trap", _) | ("set", ["-e" | "-x" | "-ex" | "-eu" | "-eux"]) => {}
        _ => return None,
    }
    Some(false)
}

/// A time as `sleep` takes it: seconds, or with a unit. The outer `None` is a fault, the inner one for ever.
fn seconds(time: &str) -> Option<Option<Duration>> {
    let (number, factor) = match time.char_indices().next_back()? {
        (at, 's') => (&time[..at], 1.0),
        (at, 'm') => (&time[..at], 60.0),
        (at, 'h') => (&time[..at], 3600.0),
        (at, 'd') => (&time[..at], 86400.0),
        _ => (time, 1.0),
    };
    let number: f64 = number.parse().ok()?;
    let is_number = number.is_finite() && number >= 0.0;
    is_number.then(|| Duration::try_from_secs_f64(number * factor).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_command_line_says_is_foreseen_and_nothing_else() {
        let shell = |script: &str| end_of(&json!({"command": ["/bin/sh", "-c"], "args": [script]}));
        let end = |seconds, code| Some(End { after: Some(Duration::from_secs(seconds)), code });
        assert_eq!(shell("echo working; sleep 5 && exit 3"), end(5, 3));
        assert_eq!(shell("set -e\nsleep 1m 30\n"), end(90, 0));
        assert_eq!(shell("sleep 2; false"), end(2, 1));
        for endless in
            ["trap exit TERM; while true; do sleep 1; done", "while :; do echo on; sleep 2; done; exit 1"]
        {
            assert_eq!(shell(endless), Some(End { after: None, code: 0 }), "{endless}");
        }
        for unknown in ["while true; do exit 1; done", "while true; do test -f /x && break; sleep 1; done"] {
            assert_eq!(shell(unknown), None, "{unknown}");
        }
        assert_eq!(shell("sleep infinity"), Some(End { after: None, code: 0 }));
        for unknown in [
            "false; sleep 1",
            "false; sleep 1; false",
            "sleep $TIME",
            "test -f /x && exit 1",
            "sleep 1 & exit 2",
            "exit 300",
            "",
        ] {
            let found = shell(unknown);
            assert_eq!(found, if unknown.is_empty() { end(0, 0) } else { None }, "{unknown}");
        }
        assert_eq!(end_of(&json!({"command": ["sleep"], "args": ["1000000"]})), end(1_000_000, 0));
        assert_eq!(end_of(&json!({"args": ["sleep", "3"]})), None);
        assert_eq!(end_of(&json!({"command": ["false"]})), end(0, 1));
        assert_eq!(end_of(&json!({"command": ["/app/server", "--port", "80"]})), None);
        assert_eq!(end_of(&json!({})), None);
        let waits = Some(End { after: None, code: 0 });
        assert_eq!(end_of(&json!({"image": "registry.example:5000/pause:3.10"})), waits);
        assert_eq!(end_of(&json!({"image": "example/pauser:1"})), None);
    }
}
