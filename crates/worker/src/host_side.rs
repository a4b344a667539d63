//! The other side of the pipe: answers a worker from the sources of the Application that it renders.

use std::sync::Arc;

use serde_bytes::ByteBuf;
use tiphys_helm::DependencyRequest;
use tiphys_kustomize::{FunctionCall, FunctionProgram, RemoteError};
use tiphys_render::{Context, RenderError, SourceTree};
use tiphys_vfs::{EntryKind, FileTree, VfsError, VfsErrorKind};

use crate::{
    fault_transfer::{FileFault, RenderFault},
    protocol::{Answer, Call, Entry, Question},
};

/// What a worker has opened for one rendering.
pub(crate) struct Answers<'a> {
    context: &'a Context<'a>,
    trees: Vec<Arc<dyn FileTree>>,
}

impl<'a> Answers<'a> {
    pub(crate) fn new(context: &'a Context<'a>) -> Self {
        Self { context, trees: Vec::new() }
    }

    /// The answer to a question.
    pub(crate) fn answer(&mut self, question: Question) -> Answer {
        let sources = self.context.sources;
        match question {
            Question::Repository { url, revision } => self.opened(sources.repository(&url, &revision)),
            Question::Chart { repository, chart, version, pass_credentials } => {
                self.opened(sources.chart(&repository, &chart, &version, pass_credentials))
            }
            Question::Kind { tree, path } => {
                self.of_tree(tree, &path, |tree| Ok(Answer::IsDir(tree.kind(&path)? == EntryKind::Dir)))
            }
            Question::Read { tree, path } => self.of_tree(tree, &path, |tree| {
                let mut bytes = Vec::new();
                tree.read_with(&path, &mut |read| bytes.extend_from_slice(read))?;
                Ok(Answer::Bytes(ByteBuf::from(bytes)))
            }),
            Question::Size { tree, path } => {
                self.of_tree(tree, &path, |tree| Ok(Answer::Size(tree.size(&path)?)))
            }
            Question::List { tree, path } => self.of_tree(tree, &path, |tree| {
                Ok(Answer::Entries(tree.list(&path)?.into_iter().map(Entry::from).collect()))
            }),
            Question::Canonical { tree, path } => {
                self.of_tree(tree, &path, |tree| Ok(Answer::Text(tree.canonical(&path)?)))
            }
            Question::Target { tree, path } => {
                self.of_tree(tree, &path, |tree| Ok(Answer::Text(tree.target(&path)?)))
            }
            Question::IsNamespaced(kind) => Answer::MaybeFlag((self.context.is_namespaced)(&kind)),
            Question::PermitsValuesFrom(scheme) => {
                Answer::MaybeFlag(Some(sources.permits_values_from(&scheme)))
            }
            Question::TagRevision { prefix, constraint } => {
                match sources.tag_revision(&prefix, &constraint) {
                    Ok(revision) => Answer::Text(revision),
                    Err(error) => Answer::RenderFault(RenderFault::from(&error)),
                }
            }
            Question::ChartAddress(_) | Question::ChartArchive { .. } | Question::ChartAdvice => {
                self.of_archives(question)
            }
            Question::RemoteRepository(_) | Question::RemoteFile(_) | Question::RemoteChart { .. } => {
                self.fetched(question)
            }
            Question::FindFunction(program) => {
                let program = FunctionProgram::from(program);
                let functions = sources.functions();
                Answer::MaybeText(functions.and_then(|functions| functions.find(&program)))
            }
            Question::RunFunction(call) => self.run(*call),
            Question::Plugin { name, tree, folder, env } => {
                let (Some(plugins), Some(tree)) = (sources.plugins(), self.tree(tree)) else {
                    return Answer::RenderFault(RenderFault::from(&RenderError::new(NOT_OFFERED)));
                };
                match plugins.generate(&name, tree, &folder, &env) {
                    Ok(generated) => Answer::Generated(generated),
                    Err(error) => Answer::RenderFault(RenderFault::from(&error)),
                }
            }
        }
    }

    fn tree(&self, number: u64) -> Option<&dyn FileTree> {
        usize::try_from(number).ok().and_then(|number| self.trees.get(number)).map(|tree| &**tree)
    }

    fn register_tree(&mut self, tree: Arc<dyn FileTree>) -> u64 {
        self.trees.push(tree);
        self.trees.len() as u64 - 1
    }

    fn opened(&mut self, opened: Result<SourceTree, RenderError>) -> Answer {
        match opened {
            Ok(SourceTree { tree, revision }) => Answer::Tree { tree: self.register_tree(tree), revision },
            Err(error) => Answer::RenderFault(RenderFault::from(&error)),
        }
    }

    fn of_tree(
        &self,
        number: u64,
        path: &str,
        ask: impl FnOnce(&dyn FileTree) -> Result<Answer, VfsError>,
    ) -> Answer {
        let absent = || VfsError { path: path.to_owned(), kind: VfsErrorKind::NotFound };
        let answer = self.tree(number).ok_or_else(absent).and_then(ask);
        answer.unwrap_or_else(|error| Answer::FileFault(FileFault::from(error)))
    }

    fn of_archives(&self, question: Question) -> Answer {
        let Some(archives) = self.context.sources.chart_archives() else {
            return Answer::TextFault(NOT_OFFERED.to_owned());
        };
        match question {
            Question::ChartAddress(repository) => match archives.address(&repository) {
                Ok(address) => Answer::Text(address),
                Err(fault) => Answer::TextFault(fault),
            },
            Question::ChartArchive { name, version, repository, pass_credentials } => {
                let wanted = DependencyRequest { name, version, repository };
                match archives.archive(&wanted, pass_credentials) {
                    Ok(archive) => Answer::Archive {
                        version: archive.version,
                        bytes: ByteBuf::from(archive.bytes.to_vec()),
                    },
                    Err(error) => Answer::ArchiveFault(error.into()),
                }
            }
            _ => Answer::Text(archives.advice()),
        }
    }

    fn fetched(&mut self, question: Question) -> Answer {
        let fault = |error: RemoteError| Answer::RemoteFault(error.into());
        let Some(loader) = self.context.sources.remote_loader() else {
            return fault(RemoteError::Other(NOT_OFFERED.to_owned()));
        };
        let tree = match question {
            Question::RemoteFile(url) => {
                return loader.file(&url).map_or_else(fault, |bytes| Answer::Bytes(ByteBuf::from(bytes)));
            }
            Question::RemoteRepository(base) => loader.repository(&base.into()),
            Question::RemoteChart { repository, name, version } => loader.chart(&repository, &name, &version),
            _ => Err(RemoteError::Other(NOT_OFFERED.to_owned())),
        };
        match tree {
            Ok(tree) => Answer::Tree { tree: self.register_tree(tree), revision: String::new() },
            Err(error) => fault(error),
        }
    }

    fn run(&self, call: Call) -> Answer {
        let (Some(functions), Some(tree)) = (self.context.sources.functions(), self.tree(call.tree)) else {
            return Answer::TextFault(NOT_OFFERED.to_owned());
        };
        let ran = functions.run(&FunctionCall {
            program: &call.program.into(),
            args: &call.args,
            env: &call.env,
            input: &call.input,
            config_file: call.config_file.as_deref(),
            tree,
            folder: &call.folder,
            is_remote: call.is_remote,
        });
        match ran {
            Ok(ran) => Answer::Ran { output: ran.output, complaints: ran.complaints, failure: ran.failure },
            Err(fault) => Answer::TextFault(fault),
        }
    }
}

/// A worker asks for nothing that its job does not offer.
const NOT_OFFERED: &str = "the process that renders asks for what was not offered to it";
