//! Dockerfiles: what the last stage copies from the build context, and what it starts.

use std::{borrow::Cow, sync::Arc};

use tiphys_diag::catch_panic;

use parse_dockerfile::{Command, Dockerfile, Instruction, Source, parse};
use tiphys_diag::Span;

use super::{Lines, parse_shell};
use crate::Files;

/// A copy from the build context: every source lands in or at `to`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Paths from the root of the context.
    pub from: Vec<String>,
    /// Absolute path in the image; it ends with `/` where it is meant as a folder.
    pub to: String,
}

/// What an image starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Program and arguments.
    pub words: Vec<String>,
    /// Where the Dockerfile says so.
    pub span: Span,
}

/// A stage of a Dockerfile.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What other stages call it; `None` if it has no name.
    pub name: Option<String>,
    /// The image or stage that it is built from, as it is written.
    pub base: String,
    /// The instruction that begins it.
    pub span: Span,
    /// The stages and images that it copies from (`--from=`), each with the place of the instruction.
    pub copied: Vec<(String, Span)>,
}

/// The last stage of a Dockerfile, with the stages that it goes on from.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// The image that the first of them is built from, as it is written.
    pub base: String,
    /// The copies from the build context.
    pub copies: Vec<Copy>,
    /// Where other copies land: from stages, images, addresses, and here-documents.
    pub foreign: Vec<String>,
    /// The shell text of each `RUN`, with the working directory.
    pub runs: Vec<(String, String)>,
    /// The working directory at the end; `None` if the base image decides it.
    pub folder: Option<String>,
    /// `ENV` texts.
    pub environment: Vec<String>,
    /// What it starts, if it is written out.
    pub start: Option<Start>,
    /// Whether `start` is an ENTRYPOINT in exec form, to which a CMD adds arguments.
    is_entrypoint: bool,
}

/// Whether a path is a Dockerfile's.
pub fn is_dockerfile(path: &str) -> bool {
    let base = path.rsplit('/').next().unwrap_or(path);
    base == "Dockerfile"
        || base == "Containerfile"
        || base.ends_with(".Dockerfile")
        || base.ends_with(".dockerfile")
        || (base.starts_with("Dockerfile.")
            && !base.ends_with(".dockerignore")
            && !base.ends_with(".md")
            && !base.ends_with(".j2")
            && !base.ends_with(".tmpl"))
}

/// A Dockerfile that parses.
fn parsed(text: &str) -> Option<Dockerfile<'_>> {
    catch_panic("the Dockerfile", || parse(text).ok()).ok().flatten()
}

/// The last stage of a Dockerfile; `None` if it does not parse.
pub fn image(files: &Files, path: &Arc<str>) -> Option<Image> {
    let text = files.text(path)?;
    let dockerfile = parsed(&text)?;
    let lines = Lines::new(path, &text);
    let mut image = Image::default();
    let chain = last_stage(&dockerfile);
    image.base = chain.first().map(|stage| stage.from.image.value.to_string()).unwrap_or_default();
    for instruction in chain.iter().flat_map(|stage| stage.instructions) {
        image.add(instruction, &lines);
    }
    Some(image)
}

/// The shell text of every `RUN` of a Dockerfile, with its place.
pub fn runs(files: &Files, path: &Arc<str>) -> Vec<(String, Span)> {
    let Some(text) = files.text(path) else { return Vec::new() };
    let Some(dockerfile) = parsed(&text) else { return Vec::new() };
    let lines = Lines::new(path, &text);
    let runs = dockerfile.instructions.iter().filter_map(|instruction| match instruction {
        Instruction::Run(run) => {
            Some((words(&run.arguments).join(" "), lines.span(run.run.span.start..usize::MAX)))
        }
        _ => None,
    });
    runs.collect()
}

/// What the instructions of all stages take from the build context by a plain path, each with the place of
/// the instruction: no patterns, variables, addresses, or copies from other stages.
pub fn sources(files: &Files, path: &Arc<str>) -> Vec<(String, Span)> {
    let Some(text) = files.text(path) else { return Vec::new() };
    let Some(dockerfile) = parsed(&text) else { return Vec::new() };
    let lines = Lines::new(path, &text);
    let mut found = Vec::new();
    for instruction in &dockerfile.instructions {
        let (options, sources, at) = match instruction {
            Instruction::Copy(it) => (&it.options, &it.src, it.copy.span.start),
            Instruction::Add(it) => (&it.options, &it.src, it.add.span.start),
            _ => continue,
        };
        if options.iter().any(|option| option.name.value == "from") {
            continue;
        }
        for source in sources {
            let Source::Path(path) = source else { continue };
            if !path.value.contains(['$', '*', '?', '[', ':', '{']) {
                let plain = path.value.trim_start_matches("./").trim_matches('/');
                found.push((plain.to_owned(), lines.span(at..usize::MAX)));
            }
        }
    }
    found
}

/// The stages of a Dockerfile, in its order; none if it does not parse.
pub fn stages(files: &Files, path: &Arc<str>) -> Vec<Stage> {
    let Some(text) = files.text(path) else { return Vec::new() };
    let Some(dockerfile) = parsed(&text) else { return Vec::new() };
    let lines = Lines::new(path, &text);
    let copied = |instruction: &Instruction<'_>| {
        let Instruction::Copy(copy) = instruction else { return None };
        let from = copy.options.iter().find(|option| option.name.value == "from")?;
        Some((from.value.as_ref()?.value.to_string(), lines.span(copy.copy.span.start..usize::MAX)))
    };
    let stages = dockerfile.stages().map(|stage| Stage {
        name: stage.from.as_.as_ref().map(|(_, name)| name.value.to_string()),
        base: stage.from.image.value.to_string(),
        span: lines.span(stage.from.from.span.start..usize::MAX),
        copied: stage.instructions.iter().filter_map(copied).collect(),
    });
    stages.collect()
}

/// The last stage, behind the stages that it is built from.
fn last_stage<'a, 'b>(dockerfile: &'b Dockerfile<'a>) -> Vec<parse_dockerfile::Stage<'a, 'b>> {
    let stages: Vec<_> = dockerfile.stages().collect();
    let Some(mut at) = stages.len().checked_sub(1) else { return Vec::new() };
    let mut chain = vec![at];
    loop {
        let base = stages[at].from.image.value.as_ref();
        let earlier = stages[..at].iter().rposition(|stage| {
            stage.from.as_.as_ref().is_some_and(|(_, name)| name.value.eq_ignore_ascii_case(base))
        });
        match earlier {
            Some(earlier) => chain.push(earlier),
            None => break,
        }
        at = *chain.last().expect("one was pushed");
    }
    let mut all: Vec<Option<_>> = stages.into_iter().map(Some).collect();
    // Each stage goes on from an earlier one, so that none is in the chain twice.
    chain.iter().rev().filter_map(|at| all[*at].take()).collect()
}

impl Image {
    fn add(&mut self, instruction: &Instruction<'_>, lines: &Lines) {
        match instruction {
            Instruction::Workdir(it) => self.folder = absolute(self.folder.as_deref(), &it.arguments.value),
            Instruction::Copy(it) => {
                let is_foreign = it.options.iter().any(|option| option.name.value == "from");
                self.copy(&it.src, &it.dest.value, is_foreign);
            }
            Instruction::Add(it) => {
                let is_foreign = it.src.iter().any(|source| match source {
                    Source::Path(path) => {
                        path.value.contains("://")
                            || path.value.contains(".tar")
                            || path.value.ends_with(".zip")
                    }
                    _ => true,
                });
                self.copy(&it.src, &it.dest.value, is_foreign);
            }
            Instruction::Run(it) => {
                let here = it
                    .here_docs
                    .iter()
                    .map(|doc| doc.value.clone())
                    .collect::<Vec<Cow<'_, str>>>()
                    .join("\n");
                let text = format!("{}\n{here}", words(&it.arguments).join(" "));
                self.runs.push((self.folder.clone().unwrap_or_default(), text));
            }
            Instruction::Env(it) => self.environment.push(it.arguments.value.to_string()),
            Instruction::Entrypoint(it) => {
                self.start = Some(start(&it.arguments, lines, it.entrypoint.span.start));
                self.is_entrypoint = matches!(it.arguments, Command::Exec(_));
            }
            Instruction::Cmd(it) => {
                let cmd = start(&it.arguments, lines, it.cmd.span.start);
                self.start = Some(match self.start.take().filter(|_| self.is_entrypoint) {
                    Some(entry) => {
                        Start { words: entry.words.into_iter().chain(cmd.words).collect(), span: cmd.span }
                    }
                    None => cmd,
                });
            }
            _ => {}
        }
    }

    fn copy(&mut self, sources: &[Source<'_>], to: &str, is_foreign: bool) {
        let from: Option<Vec<String>> = sources
            .iter()
            .map(|source| match source {
                Source::Path(path) if !path.value.contains('$') => {
                    Some(path.value.trim_start_matches("./").trim_matches('/').to_owned())
                }
                _ => None,
            })
            .collect();
        let folder = if to.ends_with('/') || to == "." || sources.len() > 1 { "/" } else { "" };
        let Some(to) = absolute(self.folder.as_deref(), to) else {
            return self.foreign.push("/".into());
        };
        let to = format!("{}{folder}", to.trim_end_matches('/'));
        match from {
            Some(from) if !is_foreign && !to.contains('$') => self.copies.push(Copy { from, to }),
            _ => self.foreign.push(to),
        }
    }
}

fn start(command: &Command<'_>, lines: &Lines, at: usize) -> Start {
    Start { words: words(command), span: lines.span(at..usize::MAX) }
}

/// The words of a command; of a shell's list, nothing is known.
fn words(command: &Command<'_>) -> Vec<String> {
    match command {
        Command::Exec(words) => words.value.iter().map(|word| word.value.to_string()).collect(),
        Command::Shell(text) => vec![text.value.replace("\\\n", " ")],
        _ => Vec::new(),
    }
}

impl Start {
    /// The words of the program that runs in the end: those of a single command without expansions, also
    /// where a shell is asked to run it.
    pub fn program(&self) -> Option<Vec<String>> {
        let text = match self.words.as_slice() {
            [text] => text,
            [shell, option, text] if is_shell(shell) && option.ends_with('c') => text,
            words => return Some(words.to_vec()),
        };
        let mut commands = parse_shell(text);
        let command = commands.pop().filter(|_| commands.is_empty())?;
        (!command.words.is_empty()).then_some(command.words)
    }
}

fn is_shell(word: &str) -> bool {
    matches!(word, "sh" | "bash" | "/bin/sh" | "/bin/bash" | "ash" | "/bin/ash")
}

/// A path from the root of the image.
fn absolute(folder: Option<&str>, path: &str) -> Option<String> {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", folder?) };
    let mut steps: Vec<&str> = Vec::new();
    for step in joined.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            step => steps.push(step),
        }
    }
    Some(format!("/{}", steps.join("/")))
}
