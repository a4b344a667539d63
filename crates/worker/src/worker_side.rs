//! The worker's side: takes jobs from a pipe, renders them with what it asks for there, and hands back what
//! came of it.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tiphys_helm::{ArchiveError, ChartArchive, ChartArchives, DependencyRequest};
use tiphys_kustomize::{
    FunctionCall, FunctionOutput, FunctionProgram, FunctionRunner, RemoteError, RemoteLoader, RepoUrl,
};
use tiphys_model::{Application, SourceType};
use tiphys_render::{Context, Plugins, RenderError, Rendered, SourceTree, Sources, render, render_given};
use tiphys_value::GroupVersionKind;
use tiphys_vfs::FileTree;

use crate::{
    Limits,
    fault_transfer::RenderFault,
    protocol::{
        self, Answer, Call, Job, Object, Offers, Output, Program, Question, RemoteBase, Said, Source,
    },
    remote_trees::RemoteTree,
};

/// Renders what it is asked for on `from`, and answers on `to`, until nothing more comes. The limits are the
/// kernel's from here on: the process can no longer open files, speak to anybody or start a program.
///
/// # Errors
/// A limit cannot be set, or the pipe breaks.
pub fn serve(
    mut from: impl Read + Send + 'static,
    to: impl Write + Send + 'static,
    limits: &Limits,
) -> io::Result<()> {
    limits.enforce()?;
    let mut first: Option<Job> = protocol::read(&mut from)?;
    let line = Arc::new(Line(Mutex::new(Ends { from: Box::new(from), to: Box::new(to) })));
    while let Some(job) = first.take() {
        Limits::allow_cpu(job.cpu_seconds)?;
        let done = rendered(&job, &line).map_err(|error| RenderFault::from(&error));
        let body = match protocol::encoded(&Said::Done(done)) {
            Ok(body) => body,
            Err(_) => protocol::encoded(&Said::Done(Err(RenderFault::from(&too_large()))))?,
        };
        let mut ends = line.0.lock();
        protocol::write_encoded(&mut ends.to, &body)?;
        first = protocol::read(&mut ends.from)?;
    }
    Ok(())
}

fn too_large() -> RenderError {
    RenderError::new(format!(
        "the objects take more than {} MiB together; make several Applications of them",
        protocol::MAX_MESSAGE >> 20
    ))
}

fn rendered(job: &Job, line: &Arc<Line>) -> Result<Output, RenderError> {
    let application = Application::from_value(&job.application)
        .map_err(|error| RenderError::new(format!("the Application cannot be read: {error}")))?;
    let sources = RemoteSources { line: line.clone(), offers: &job.offers };
    let is_namespaced = |kind: &GroupVersionKind| match line.ask(Question::IsNamespaced(kind.clone())) {
        Ok(Answer::MaybeFlag(flag)) => flag,
        _ => None,
    };
    let now = job.now.as_deref().map(str::parse).transpose();
    let now = now.map_err(|error| RenderError::new(format!("the time cannot be read: {error}")))?;
    let context = Context {
        sources: &sources,
        kube_version: &job.kube_version,
        api_versions: &job.api_versions,
        tracking: &job.tracking,
        engine_namespace: &job.engine_namespace,
        is_namespaced: &is_namespaced,
        origins: false,
        mock_secrets: job.mock_secrets,
        now,
    };
    let rendered = match &job.manifests {
        Some(manifests) => render_given(&application, manifests, &context)?,
        None => render(&application, &context)?,
    };
    Ok(output(rendered))
}

fn output(rendered: Rendered) -> Output {
    let object = |object: tiphys_value::RenderedObject| Object {
        value: object.value,
        file: object.location.file.to_string(),
        line: object.location.line,
        column: object.location.column,
    };
    let source = |source: tiphys_render::RenderedSource| Source {
        revision: source.revision,
        source_type: source.source_type,
        names_revision: source.names_revision,
        asked_versions: source.asked_versions,
    };
    Output {
        objects: rendered.objects.into_iter().map(object).collect(),
        sources: rendered.sources.into_iter().map(source).collect(),
        warnings: rendered.warnings,
    }
}

/// The pipe to the process that the worker works for. One question at a time: renderers have several threads.
pub(crate) struct Line(Mutex<Ends>);

struct Ends {
    from: Box<dyn Read + Send>,
    to: Box<dyn Write + Send>,
}

impl Line {
    /// Asks, and waits for the answer.
    pub(crate) fn ask(&self, question: Question) -> io::Result<Answer> {
        let mut ends = self.0.lock();
        protocol::write(&mut ends.to, &Said::Question(question))?;
        protocol::read(&mut ends.from)?
            .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "nobody answers any more"))
    }

    fn render_error(error: &io::Error) -> RenderError {
        RenderError::new(format!("the engine does not answer the process that renders: {error}"))
            .transient(true)
    }
}

/// The sources of an Application, which stand in another process.
struct RemoteSources<'a> {
    line: Arc<Line>,
    offers: &'a Offers,
}

impl RemoteSources<'_> {
    fn ask(&self, question: Question) -> Result<Answer, RenderError> {
        match self.line.ask(question) {
            Ok(Answer::RenderFault(fault)) => Err(fault.into()),
            Ok(answer) => Ok(answer),
            Err(error) => Err(Line::render_error(&error)),
        }
    }

    fn tree(&self, question: Question) -> Result<SourceTree, RenderError> {
        match self.ask(question)? {
            Answer::Tree { tree, revision } => {
                let tree = RemoteTree { line: self.line.clone(), number: tree };
                Ok(SourceTree { tree: Arc::new(tree), revision })
            }
            _ => Err(unexpected_answer()),
        }
    }
}

fn unexpected_answer() -> RenderError {
    RenderError::new("the engine answers another question than the process that renders asked")
}

impl Sources for RemoteSources<'_> {
    fn repository(&self, url: &str, revision: &str) -> Result<SourceTree, RenderError> {
        self.tree(Question::Repository { url: url.to_owned(), revision: revision.to_owned() })
    }

    fn chart(
        &self,
        repository: &str,
        chart: &str,
        version: &str,
        pass_credentials: bool,
    ) -> Result<SourceTree, RenderError> {
        self.tree(Question::Chart {
            repository: repository.to_owned(),
            chart: chart.to_owned(),
            version: version.to_owned(),
            pass_credentials,
        })
    }

    fn chart_archives(&self) -> Option<Arc<dyn ChartArchives>> {
        self.offers.chart_archives.then(|| Arc::new(Remote(self.line.clone())) as _)
    }

    fn kustomize_options(&self, version: &str) -> &str {
        self.offers.kustomize_options.get(version).map_or("", String::as_str)
    }

    fn is_enabled(&self, tool: SourceType) -> bool {
        self.offers.tools.contains(&tool)
    }

    fn evaluates_jsonnet(&self) -> bool {
        self.offers.jsonnet
    }

    fn builds_parts(&self) -> bool {
        self.offers.parts
    }

    fn plugins(&self) -> Option<Arc<dyn Plugins>> {
        self.offers.plugins.then(|| Arc::new(Remote(self.line.clone())) as _)
    }

    fn functions(&self) -> Option<Arc<dyn FunctionRunner>> {
        self.offers.functions.then(|| Arc::new(Remote(self.line.clone())) as _)
    }

    fn tag_revision(&self, prefix: &str, constraint: &str) -> Result<String, RenderError> {
        let question = Question::TagRevision { prefix: prefix.to_owned(), constraint: constraint.to_owned() };
        match self.ask(question)? {
            Answer::Text(revision) => Ok(revision),
            _ => Err(unexpected_answer()),
        }
    }

    fn permits_values_from(&self, scheme: &str) -> bool {
        let permits = self.line.ask(Question::PermitsValuesFrom(scheme.to_owned()));
        matches!(permits, Ok(Answer::MaybeFlag(Some(true))))
    }

    fn remote_loader(&self) -> Option<Arc<dyn RemoteLoader>> {
        self.offers.remote_loader.then(|| Arc::new(Remote(self.line.clone())) as _)
    }
}

/// What the other process does for renderers beside serving sources.
struct Remote(Arc<Line>);

impl ChartArchives for Remote {
    fn address(&self, repository: &str) -> Result<String, String> {
        match self.0.ask(Question::ChartAddress(repository.to_owned())) {
            Ok(Answer::Text(address)) => Ok(address),
            Ok(Answer::TextFault(fault)) => Err(fault),
            Ok(_) => Err(unexpected_answer().to_string()),
            Err(error) => Err(Line::render_error(&error).to_string()),
        }
    }

    fn archive(
        &self,
        wanted: &DependencyRequest,
        pass_credentials: bool,
    ) -> Result<ChartArchive, ArchiveError> {
        let DependencyRequest { name, version, repository } = wanted.clone();
        let lost = |error: RenderError| ArchiveError {
            reason: error.to_string(),
            is_transient: error.is_transient(),
            is_out_of_reach: false,
        };
        match self.0.ask(Question::ChartArchive { name, version, repository, pass_credentials }) {
            Ok(Answer::Archive { version, bytes }) => {
                Ok(ChartArchive { version, bytes: bytes.into_vec().into() })
            }
            Ok(Answer::ArchiveFault(fault)) => Err(fault.into()),
            Ok(_) => Err(lost(unexpected_answer())),
            Err(error) => Err(lost(Line::render_error(&error))),
        }
    }

    fn advice(&self) -> String {
        match self.0.ask(Question::ChartAdvice) {
            Ok(Answer::Text(advice)) => advice,
            _ => String::new(),
        }
    }
}

impl Remote {
    fn fetched(&self, question: Question) -> Result<Answer, RemoteError> {
        match self.0.ask(question) {
            Ok(Answer::RemoteFault(fault)) => Err(fault.into()),
            Ok(answer) => Ok(answer),
            Err(error) => Err(RemoteError::Other(Line::render_error(&error).to_string())),
        }
    }

    fn fetched_tree(&self, question: Question) -> Result<Arc<dyn FileTree>, RemoteError> {
        match self.fetched(question)? {
            Answer::Tree { tree, .. } => Ok(Arc::new(RemoteTree { line: self.0.clone(), number: tree })),
            _ => Err(RemoteError::Other(unexpected_answer().to_string())),
        }
    }
}

impl RemoteLoader for Remote {
    fn repository(&self, url: &RepoUrl) -> Result<Arc<dyn FileTree>, RemoteError> {
        let RepoUrl { raw, host, repo_path, folder, revision, submodules, timeout } = url.clone();
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let base = RemoteBase { raw, host, repo_path, folder, revision, submodules, timeout_ms };
        self.fetched_tree(Question::RemoteRepository(base))
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, RemoteError> {
        match self.fetched(Question::RemoteFile(url.to_owned()))? {
            Answer::Bytes(bytes) => Ok(bytes.into_vec()),
            _ => Err(RemoteError::Other(unexpected_answer().to_string())),
        }
    }

    fn chart(&self, repository: &str, name: &str, version: &str) -> Result<Arc<dyn FileTree>, RemoteError> {
        self.fetched_tree(Question::RemoteChart {
            repository: repository.to_owned(),
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }
}

impl From<RemoteBase> for RepoUrl {
    fn from(base: RemoteBase) -> Self {
        let RemoteBase { raw, host, repo_path, folder, revision, submodules, timeout_ms } = base;
        let timeout = Duration::from_millis(timeout_ms);
        Self { raw, host, repo_path, folder, revision, submodules, timeout }
    }
}

impl FunctionRunner for Remote {
    fn find(&self, program: &FunctionProgram) -> Option<String> {
        match self.0.ask(Question::FindFunction(program.into())) {
            Ok(Answer::MaybeText(found)) => found,
            _ => None,
        }
    }

    fn run(&self, call: &FunctionCall<'_>) -> Result<FunctionOutput, String> {
        let call = Call {
            program: call.program.into(),
            args: call.args.to_vec(),
            env: call.env.to_vec(),
            input: call.input.to_owned(),
            config_file: call.config_file.map(str::to_owned),
            tree: call.tree.remote_handle().ok_or("the files beside the function stand in no source")?,
            folder: call.folder.to_owned(),
            is_remote: call.is_remote,
        };
        match self.0.ask(Question::RunFunction(Box::new(call))) {
            Ok(Answer::Ran { output, complaints, failure }) => {
                Ok(FunctionOutput { output, complaints, failure })
            }
            Ok(Answer::TextFault(fault)) => Err(fault),
            Ok(_) => Err(unexpected_answer().to_string()),
            Err(error) => Err(Line::render_error(&error).to_string()),
        }
    }
}

impl From<&FunctionProgram> for Program {
    fn from(program: &FunctionProgram) -> Self {
        match program.clone() {
            FunctionProgram::Executable(path) => Self::Executable(path),
            FunctionProgram::Image(image) => Self::Image(image),
            FunctionProgram::Plugin { api_version, kind } => Self::Plugin { api_version, kind },
        }
    }
}

impl From<Program> for FunctionProgram {
    fn from(program: Program) -> Self {
        match program {
            Program::Executable(path) => Self::Executable(path),
            Program::Image(image) => Self::Image(image),
            Program::Plugin { api_version, kind } => Self::Plugin { api_version, kind },
        }
    }
}

impl Plugins for Remote {
    fn generate(
        &self,
        name: &str,
        tree: &dyn FileTree,
        folder: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Option<(String, String)>, RenderError> {
        let tree = tree
            .remote_handle()
            .ok_or_else(|| RenderError::new("the files that the plugin is to read stand in no source"))?;
        let question =
            Question::Plugin { name: name.to_owned(), tree, folder: folder.to_owned(), env: env.clone() };
        match self.0.ask(question) {
            Ok(Answer::Generated(generated)) => Ok(generated),
            Ok(Answer::RenderFault(fault)) => Err(fault.into()),
            Ok(_) => Err(unexpected_answer()),
            Err(error) => Err(Line::render_error(&error)),
        }
    }
}
