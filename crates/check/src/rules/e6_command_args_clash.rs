//! # A command that is given arguments made for another one
//!
//! `command` replaces the image's entrypoint, `args` is what follows it. Who patches only one of them makes
//! a command line that nobody wrote: `argocd-server --insecure /usr/local/bin/argocd-server`.
//!
//! People see: `CrashLoopBackOff`, `Error: unknown command "/usr/local/bin/argocd-server" for
//! "argocd-server"`.
//!
//! ## Bad
//! ```yaml
//! command: [argocd-server, --insecure]
//! args: [/usr/local/bin/argocd-server]      # of the manifest that was patched
//! ```
//! ## Good
//! ```yaml
//! args: [/usr/local/bin/argocd-server, --insecure]
//! ```
//! ## When to suppress
//! Where the command is a wrapper that starts its arguments.

use tiphys_diag::Severity;
use tiphys_value::{Location, OriginKind, Value};

use crate::{
    Context, Finding, Report, Rule,
    support::{
        dedup::Once,
        pods::{self, Container, Pod},
        unrendered_files,
    },
};

/// See the module.
pub(super) const RULE: Rule = Rule {
    id: "E6-command-args-clash",
    incident: "E6",
    severity: Severity::Error,
    title: "a command that is given arguments made for another one",
    page: page!("e6_command_args_clash.rs"),
    check,
};

/// Programs whose arguments are a command line.
const WRAPPERS: [&str; 18] = [
    "sh",
    "bash",
    "ash",
    "zsh",
    "env",
    "exec",
    "tini",
    "dumb-init",
    "gosu",
    "su-exec",
    "nice",
    "timeout",
    "catatonit",
    "s6-svscan",
    "docker-entrypoint.sh",
    "entrypoint.sh",
    "sudo",
    "nsenter",
];

fn check(context: &Context<'_>, report: &mut Report) {
    let mut once = Once::default();
    for object in &context.survey.objects {
        let Some(pod) = pods::pod_of(object) else { continue };
        let is_loose = unrendered_files::is_loose(context.survey, object);
        if is_loose && unrendered_files::may_be_a_patch(context.survey, object) {
            continue;
        }
        for container in pod.containers() {
            let (command, args) = (field_words(&container, "command"), field_words(&container, "args"));
            if let Some((field, fault)) = unrunnable(&command, &args) {
                let mut finding = cannot_start(context, &pod, &container, field, fault);
                if is_loose {
                    finding.diagnostic.severity = Severity::Warning;
                }
                once.add(fault.texts().0, finding);
                continue;
            }
            if is_loose {
                continue;
            }
            let (Some(program), Some(first)) = (command.first(), args.first()) else { continue };
            if WRAPPERS.contains(&base(program)) {
                continue;
            }
            if is_given_itself(program, first) {
                once.add("repeats", repeated(context, &pod, &container, program, first));
            } else if (command.len() > 1 || !first.starts_with('-')) && is_patched_alone(&pod, &container) {
                let mut finding = patched(context, &pod, &container);
                if goes_on(&container, &command, &args) {
                    finding.diagnostic.severity = Severity::Info;
                }
                once.add("patched", finding);
            }
        }
    }
    scripted(context, &mut once);
    tasks(context, &mut once);
    once.report(report);
}

/// Why a command cannot start, whatever the image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unrunnable {
    /// A whole command line is one word.
    WholeLine,
    /// A shell is given a command line without `-c`.
    NoOption,
    /// A setting of Redis and its value are one word.
    Joined,
}

impl Unrunnable {
    /// What is wrong, why that is so, and what helps.
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::WholeLine => (
                "a whole command line is one word of the command",
                "the first word is the name of the program, spaces included: `exec: \"…\": executable file not found in $PATH`",
                "make each word an item of its own, or hand the line to a shell: [\"/bin/sh\", \"-c\", \"…\"]",
            ),
            Self::NoOption => (
                "a shell is given a command line without -c",
                "without -c the shell takes the line for the name of a script: `can't open '…': No such file or directory`",
                "add \"-c\" before it",
            ),
            Self::Joined => (
                "redis-server takes --name and its value as two words, not --name=value",
                "it reads the whole word as the name of a setting: `Bad directive or wrong number of arguments`",
                "make the value an item of its own",
            ),
        }
    }
}

/// Where a command cannot start, and why.
fn unrunnable(command: &[&str], args: &[&str]) -> Option<(&'static str, Unrunnable)> {
    const SHELLS: [&str; 4] = ["sh", "bash", "ash", "zsh"];
    let program = command.first().or(args.first())?;
    // Redis joins what follows two dashes to a line of its configuration.
    let is_of_redis = matches!(base(program), "redis-server" | "valkey-server");
    let is_joined = |word: &&str| word.starts_with("--") && word.contains('=') && !word.contains(' ');
    let mut places = [("args", args), ("command", command)].into_iter().filter(|_| is_of_redis);
    if let Some((field, _)) = places.find(|(_, words)| words.iter().any(is_joined)) {
        return Some((field, Unrunnable::Joined));
    }
    let program = command.first()?;
    // Paths of Windows have spaces; what is filled in later may be a path alone.
    let is_path = |text: &str| text.contains('\\') || text.contains('$');
    if program.trim().contains(char::is_whitespace) && !is_path(program) {
        return Some(("command", Unrunnable::WholeLine));
    }
    let mut rest = command[1..].iter().chain(args);
    let first =
        SHELLS.contains(&base(program)).then(|| rest.find(|word| !word.starts_with(['-', '+'])))??;
    let options: Vec<&&str> =
        command[1..].iter().chain(args).take_while(|word| word.starts_with(['-', '+'])).collect();
    let takes_text = options.iter().any(|option| {
        option.starts_with("--")
            || matches!(**option, "-o" | "+o" | "-O" | "+O" | "-s")
            || option.contains('c')
    });
    let is_line = first.trim().contains(char::is_whitespace) && !is_path(first);
    let field = if command.contains(first) { "command" } else { "args" };
    (!takes_text && is_line).then_some((field, Unrunnable::NoOption))
}

fn cannot_start(
    context: &Context<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
    field: &str,
    fault: Unrunnable,
) -> crate::Finding {
    let (what, why, help) = fault.texts();
    let span = context.survey.span(pod.object, &container.path.key(field));
    let diagnostic = RULE
        .diagnostic(format!("container {} of {} cannot start: {what}", container.name(), pod.object.title()))
        .at(span, "this cannot be run")
        .because(why)
        .help(help);
    RULE.finding(context, pod.object, diagnostic)
}

/// Patches that a script or playbook makes in the cluster, by their text: one that sets the command of a
/// container, and says nothing of its arguments.
fn scripted(context: &Context<'_>, once: &mut Once) {
    const ENDINGS: [&str; 6] = [".yml", ".yaml", ".sh", ".j2", ".bash", "Makefile"];
    let files = &context.survey.files;
    for path in files.ending(&ENDINGS) {
        let Some(text) = files.text(path).filter(|text| text.contains("kubectl patch")) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("kubectl patch")) {
            let Some(offset) = sets_command_alone(&lines[at..]) else { continue };
            if line.trim_start().starts_with('#') {
                continue;
            }
            let place = |index: usize| {
                files.span(&Location::new(path.clone(), u32::try_from(index + 1).unwrap_or(u32::MAX), 0))
            };
            let mut diagnostic = RULE
                .diagnostic("a patch made in the cluster sets the command of a container, and keeps its arguments")
                .at(place(at + offset), "the command is set here")
                .because("the new command is given the arguments of the manifest; and what is not in Git, the next sync may take back")
                .help("set args in the same patch, or better the setting in the manifests");
            if offset > 0 {
                diagnostic = diagnostic.see(place(at), "by this patch");
            }
            diagnostic.severity = Severity::Warning;
            once.add("scripted", Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// The same by a task of Ansible's module for objects.
fn tasks(context: &Context<'_>, once: &mut Once) {
    let files = &context.survey.files;
    for path in files.ending(&[".yml", ".yaml"]) {
        let Some(text) = files.text(path).filter(|text| text.contains("state: patched")) else { continue };
        let lines: Vec<&str> = text.lines().collect();
        for (at, _) in lines.iter().enumerate().filter(|(_, line)| line.trim() == "state: patched") {
            let depth = |line: &str| line.len() - line.trim_start().len();
            let starts = |index: &usize| {
                let line = lines[*index];
                line.trim_start().starts_with("- ") && depth(line) < depth(lines[at])
            };
            let Some(start) = (0..at).rev().find(starts) else { continue };
            let is_below = |line: &&&str| line.trim().is_empty() || depth(line) > depth(lines[start]);
            let task: Vec<&str> = lines[start + 1..].iter().take_while(is_below).copied().collect();
            let field = |name: &str| {
                let is_own =
                    |at: &usize| task[*at].trim_start().starts_with(name) && !is_of_exec(&task[..*at], "");
                (0..task.len()).find(is_own)
            };
            let (Some(command), None) = (field("command:"), field("args:")) else { continue };
            let place = |index: usize| {
                files.span(&Location::new(path.clone(), u32::try_from(index + 1).unwrap_or(u32::MAX), 0))
            };
            let mut diagnostic = RULE
                .diagnostic("a patch made in the cluster sets the command of a container, and keeps its arguments")
                .at(place(start + 1 + command), "the command is set here")
                .see(place(at), "by this patch")
                .because("the new command is given the arguments of the manifest; and what is not in Git, the next sync may take back")
                .help("set args in the same patch, or better the setting in the manifests");
            diagnostic.severity = Severity::Warning;
            once.add("scripted", Finding::new(RULE.incident, diagnostic).likely());
        }
    }
}

/// Whether the command line that starts here sets a command and no arguments: how many lines below it does.
fn sets_command_alone(lines: &[&str]) -> Option<usize> {
    const LONGEST: usize = 25;
    let ends = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("- name:");
    let patch: Vec<&str> = lines.iter().take(LONGEST).take_while(ends).copied().collect();
    let has = |words: [&str; 4]| {
        let holds = |at: usize| {
            let found = words.iter().find_map(|word| patch[at].find(word));
            found.is_some_and(|column| !is_of_exec(&patch[..at], &patch[at][..column]))
        };
        (0..patch.len()).find(|at| holds(*at))
    };
    let command = has(["/command\"", "\"command\":", "'command':", "/command'"])?;
    // A script takes the arguments that are left for its own, and need not look at them.
    let text: String = patch[command].chars().filter(|c| !c.is_whitespace()).collect();
    let runs_script = ["\"-c\",\"", "'-c','"].iter().any(|mark| text.contains(mark));
    if runs_script {
        return None;
    }
    has(["/args\"", "\"args\":", "'args':", "/args'"]).is_none().then_some(command)
}

/// Whether a command is that of a probe or of a hook of the container, not the container's own: what stands
/// before it, on its line and on the lines above, opens an `exec`.
fn is_of_exec(above: &[&str], before: &str) -> bool {
    let opens = |text: &str| {
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || "{\"'/".contains(c));
        let text = text.strip_suffix(':').unwrap_or(text);
        text.trim_end_matches(['"', '\'']).ends_with("exec")
    };
    let is_first = before.trim_matches(|c: char| c.is_whitespace() || "\"'{,".contains(c)).is_empty();
    let last = above.iter().rev().find(|line| !line.trim().is_empty());
    opens(before) || (is_first && last.is_some_and(|line| opens(line)))
}

fn field_words<'a>(container: &Container<'a>, field: &str) -> Vec<&'a str> {
    pods::list(container.value, field).iter().filter_map(Value::as_str).collect()
}

/// Whether a new command is but the image's own program with more flags, to which the old flags are added.
fn goes_on(container: &Container<'_>, command: &[&str], args: &[&str]) -> bool {
    let is_own = command.first().is_some_and(|program| base(program) == container.name());
    is_own
        && args.iter().all(|it| it.starts_with('-'))
        && command.get(1).is_some_and(|it| it.starts_with('-'))
}

fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether the first argument of a program is the program once more, by its path, and the program is none
/// that starts its arguments.
pub fn is_given_itself(program: &str, argument: &str) -> bool {
    base(program) == base(argument) && argument.starts_with('/') && !WRAPPERS.contains(&base(program))
}

/// Whether a patch wrote the command, but not the arguments that were there.
fn is_patched_alone(pod: &Pod<'_>, container: &Container<'_>) -> bool {
    let writer = |field: &str| {
        let chain = pod.object.rendered.origins.lookup(&container.path.key(field));
        chain.first().map(|origin| (origin.kind, origin.location.file.clone()))
    };
    let (Some((kind, file)), Some((_, other))) = (writer("command"), writer("args")) else { return false };
    kind == OriginKind::Patch && file != other
}

fn repeated(
    context: &Context<'_>,
    pod: &Pod<'_>,
    container: &Container<'_>,
    program: &str,
    argument: &str,
) -> crate::Finding {
    let place = |field: &str| context.survey.span(pod.object, &container.path.key(field).index(0));
    let diagnostic = RULE
        .diagnostic(format!(
            "container {} of {} runs `{program} … {argument}`: the program is its own first argument",
            container.name(),
            pod.object.title()
        ))
        .at(place("args"), "the program again, as an argument")
        .see(place("command"), "the command is set here")
        .because("command replaces the image's entrypoint and args follows it; the program takes its own path for a subcommand")
        .help("set args alone, with all arguments, or both together");
    RULE.finding(context, pod.object, diagnostic)
}

fn patched(context: &Context<'_>, pod: &Pod<'_>, container: &Container<'_>) -> crate::Finding {
    let place = |field: &str| context.survey.span(pod.object, &container.path.key(field));
    let mut diagnostic = RULE
        .diagnostic(format!(
            "a patch sets the command of container {} of {}, and keeps its arguments",
            container.name(),
            pod.object.title()
        ))
        .at(place("command"), "set by the patch")
        .see(place("args"), "made for the command before")
        .because("the new command is given the arguments of the old one")
        .help("set args in the same patch, if only to an empty list");
    diagnostic.severity = Severity::Warning;
    RULE.finding(context, pod.object, diagnostic).likely()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_probe_is_not_that_of_the_container() {
        let cases = [
            (
                r#"kubectl patch deploy web -p '{"spec": {"containers": [{"name": "web", "command": ["run"]}]}}'"#,
                true,
            ),
            (r#"kubectl patch deploy web -p '{"livenessProbe": {"exec": {"command": ["ok"]}}}'"#, false),
            (
                r#"kubectl patch deploy web --type json -p '[{"path": "/spec/containers/0/livenessProbe/exec/command"}]'"#,
                false,
            ),
            (
                r#"kubectl patch deploy web --type json -p '[{"path": "/spec/containers/0/command", "value": ["run"]}]'"#,
                true,
            ),
            (
                "kubectl patch deploy web -p '\n\"livenessProbe\": {\n\"exec\": {\n\"command\": [\"ok\"]",
                false,
            ),
            ("kubectl patch deploy web -p '\n\"name\": \"web\",\n\"command\": [\"run\"]", true),
        ];
        for (text, is_told) in cases {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(sets_command_alone(&lines).is_some(), is_told, "{text}");
        }
    }
}
