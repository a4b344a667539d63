//! What the documentation takes from the program: the reference of the command line as one Markdown page, the
//! contents of the book, and the definitions to install.

use std::fmt::Write as _;

use clap::Command;

/// The page `docs/cli.md`: every command with its help, in the order of `tiphys --help`.
pub fn markdown(command: &Command) -> String {
    let mut page = String::from("# Command line\n\nWritten by `cargo xtask docs`; do not edit.\n");
    section(&mut page, &mut command.clone(), &[]);
    page
}

fn section(page: &mut String, command: &mut Command, above: &[String]) {
    let mut path = above.to_vec();
    path.push(command.get_name().to_owned());
    *command = std::mem::take(command).bin_name(path.join(" ")).term_width(100);
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## {}\n\n```text\n{}\n```\n",
        path.join(" "),
        trimmed(&command.render_long_help().to_string())
    );
    let visible = |sub: &&mut Command| sub.get_name() != "help" && !sub.is_hide_set();
    for sub in command.get_subcommands_mut().filter(visible) {
        section(page, sub, &path);
    }
}

/// The text without trailing blanks on any line.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// The table of contents `docs/SUMMARY.md` with the pages of all rules below the line of their overview, in place
/// of those that it lists.
///
/// `rules` are names of files in `docs/rules`.
pub fn contents<'n>(summary: &str, rules: impl IntoIterator<Item = &'n str>) -> String {
    const OVERVIEW: &str = "- [Rules](rules/README.md)";
    let mut page = String::new();
    let mut rules = Some(rules);
    for line in summary.lines().filter(|line| !line.starts_with("  - ") || !line.contains("](rules/")) {
        let _ = writeln!(page, "{line}");
        let below = if line == OVERVIEW { rules.take() } else { None };
        for name in below.into_iter().flatten().filter_map(|name| name.strip_suffix(".md")) {
            if name != "README" {
                let _ = writeln!(page, "  - [{name}](rules/{name}.md)");
            }
        }
    }
    page
}

/// The definitions of Argo CD's kinds as one YAML stream: `deploy/install/crds.yaml`.
pub fn definitions() -> String {
    let all = tiphys_controller::crds::definitions();
    let mut page = String::from("# Written by `cargo xtask docs`; do not edit.\n");
    for definition in &all {
        let _ = write!(page, "---\n{}", tiphys_yaml::to_yaml(definition));
    }
    page
}
