//! Workers of one process: some are kept, each renders one Application at a time.

use std::{
    ffi::OsString,
    io::{self, BufReader, BufWriter},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
};

use parking_lot::{Condvar, Mutex};
use tiphys_model::{Application, SourceType};
use tiphys_render::{Cause, Context, RenderError, Rendered, RenderedSource};
use tiphys_value::{Location, Origins, RenderedObject};

use crate::{
    Limits,
    host_side::Answers,
    protocol::{self, Job, Offers, Output, Said},
};

/// What a worker has rendered leaves memory in pieces; after so many renderings a new one begins.
const MAX_JOBS: usize = 500;

/// Processes that render.
pub struct Workers {
    program: PathBuf,
    args: Vec<OsString>,
    limits: Limits,
    most: usize,
    slots: Mutex<Slots>,
    freed: Condvar,
}

#[derive(Default)]
struct Slots {
    idle: Vec<Worker>,
    busy: usize,
}

/// Why a worker gave no answer.
enum Lost {
    /// It could not be started.
    Unstarted(io::Error),
    /// It ended before it was done.
    Ended(Option<ExitStatus>),
}

impl Workers {
    /// At most `most` workers at a time, each of them this program with these arguments, which is to call
    /// [`serve`](crate::serve) on its standard input and output.
    pub fn new(program: impl Into<PathBuf>, args: Vec<OsString>, limits: Limits, most: usize) -> Self {
        Self {
            program: program.into(),
            args,
            limits,
            most: most.max(1),
            slots: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Renders an Application, or `manifests` in the place of its sources, as [`tiphys_render::render`] and
    /// [`tiphys_render::render_given`] do, without origins. Blocks until a worker is free and done.
    ///
    /// # Errors
    /// As there; or the rendering was ended by a limit, which the error names.
    pub fn render(
        &self,
        app: &Application,
        manifests: Option<&[String]>,
        context: &Context<'_>,
    ) -> Result<Rendered, RenderError> {
        let job = self.job(app, manifests, context);
        let _slot = self.slot();
        if let Some(mut worker) = self.idle() {
            // One that was used before may end by what earlier renderings left in it.
            if let Ok(done) = worker.render(&job, context) {
                self.keep(worker);
                return done;
            }
        }
        let mut worker = Worker::start(&self.program, &self.args)
            .map_err(|error| self.render_error(&Lost::Unstarted(error)))?;
        let done = worker.render(&job, context).map_err(|lost| self.render_error(&lost))?;
        self.keep(worker);
        done
    }

    fn job(&self, app: &Application, manifests: Option<&[String]>, context: &Context<'_>) -> Job {
        let sources = context.sources;
        let tools =
            [SourceType::Helm, SourceType::Kustomize, SourceType::Directory, SourceType::Plugin].into_iter();
        let versions = app
            .spec
            .effective_sources()
            .into_iter()
            .map(|source| source.kustomize.map(|kustomize| kustomize.version).unwrap_or_default())
            .chain([String::new()]);
        Job {
            application: app.to_value(),
            manifests: manifests.map(<[String]>::to_vec),
            kube_version: context.kube_version.to_owned(),
            api_versions: context.api_versions.to_vec(),
            tracking: context.tracking.clone(),
            engine_namespace: context.engine_namespace.to_owned(),
            mock_secrets: context.mock_secrets,
            now: context.now.map(|now| now.to_string()),
            cpu_seconds: self.limits.cpu.as_secs(),
            offers: Offers {
                tools: tools.filter(|tool| sources.is_enabled(*tool)).collect(),
                kustomize_options: versions
                    .map(|version| {
                        let options = sources.kustomize_options(&version).to_owned();
                        (version, options)
                    })
                    .collect(),
                jsonnet: sources.evaluates_jsonnet(),
                parts: sources.builds_parts(),
                plugins: sources.plugins().is_some(),
                functions: sources.functions().is_some(),
                remote_loader: sources.remote_loader().is_some(),
                chart_archives: sources.chart_archives().is_some(),
            },
        }
    }

    /// Waits for leave to use one worker.
    fn slot(&self) -> Slot<'_> {
        let mut slots = self.slots.lock();
        while slots.busy >= self.most {
            self.freed.wait(&mut slots);
        }
        slots.busy += 1;
        Slot(self)
    }

    fn idle(&self) -> Option<Worker> {
        self.slots.lock().idle.pop()
    }

    fn keep(&self, worker: Worker) {
        if worker.jobs < MAX_JOBS {
            self.slots.lock().idle.push(worker);
        }
    }

    fn render_error(&self, lost: &Lost) -> RenderError {
        let memory = self.limits.memory >> 20;
        let seconds = self.limits.cpu.as_secs().max(1);
        match lost {
            Lost::Unstarted(error) => {
                RenderError::new(format!("no process to render in can be started: {error}")).transient(true)
            }
            Lost::Ended(status) => match status.and_then(ended_by) {
                Some(Signal::Cpu) => RenderError::new(format!(
                    "rendering took more than {seconds} s of processor time and was ended; make the sources smaller, or raise --render-cpu"
                ))
                .caused_by(Cause::Ended),
                Some(Signal::Abort) => RenderError::new(format!(
                    "rendering needed more than {memory} MiB of memory, or called itself too deeply, and was ended; make the sources smaller, or raise --render-memory"
                ))
                .caused_by(Cause::Ended),
                Some(Signal::Kill) => RenderError::new(
                    "the process that rendered was killed, as a rule because the container or machine has no memory left",
                )
                .caused_by(Cause::Ended),
                None => {
                    let how = status.map_or_else(|| "without a status".to_owned(), |status| status.to_string());
                    RenderError::new(format!(
                        "the process that rendered ended before it was done ({how}); this is a fault of Tiphys, please report it"
                    ))
                }
            },
        }
    }
}

/// Leave to use one worker; given back at the end, however the rendering ends.
struct Slot<'a>(&'a Workers);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.slots.lock().busy -= 1;
        self.0.freed.notify_one();
    }
}

/// The signals by which limits end a process.
enum Signal {
    Cpu,
    Abort,
    Kill,
}

#[cfg(unix)]
fn ended_by(status: ExitStatus) -> Option<Signal> {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal as Named;
    let signal = status.signal()?;
    let is = |named: Named| signal == named.as_raw();
    if is(Named::XCPU) {
        Some(Signal::Cpu)
    } else if is(Named::ABORT) || is(Named::SEGV) {
        Some(Signal::Abort)
    } else {
        is(Named::KILL).then_some(Signal::Kill)
    }
}

#[cfg(not(unix))]
fn ended_by(_: ExitStatus) -> Option<Signal> {
    None
}

/// One process. It ends with this value.
struct Worker {
    child: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// How many renderings it was asked for.
    jobs: usize,
}

impl Worker {
    fn start(program: &PathBuf, args: &[OsString]) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no pipes"));
        };
        Ok(Self { child, to: BufWriter::new(to), from: BufReader::new(from), jobs: 0 })
    }

    fn render(&mut self, job: &Job, context: &Context<'_>) -> Result<Result<Rendered, RenderError>, Lost> {
        self.jobs += 1;
        let mut answers = Answers::new(context);
        self.talk(job, &mut answers).map_err(|_| {
            // Whatever broke the pipe: this worker is of no use any more.
            let _ = self.child.kill();
            Lost::Ended(self.child.wait().ok())
        })
    }

    fn talk(&mut self, job: &Job, answers: &mut Answers<'_>) -> io::Result<Result<Rendered, RenderError>> {
        protocol::write(&mut self.to, job)?;
        loop {
            let said: Option<Said> = protocol::read(&mut self.from)?;
            match said.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))? {
                Said::Question(question) => protocol::write(&mut self.to, &answers.answer(question))?,
                Said::Done(Ok(output)) => return Ok(Ok(rendered(output))),
                Said::Done(Err(fault)) => return Ok(Err(fault.into())),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rendered(output: Output) -> Rendered {
    let object = |object: protocol::Object| RenderedObject {
        value: object.value,
        location: Location::new(object.file, object.line, object.column),
        origins: Origins::default(),
    };
    let source = |source: protocol::Source| RenderedSource {
        revision: source.revision,
        source_type: source.source_type,
        names_revision: source.names_revision,
        asked_versions: source.asked_versions,
    };
    Rendered {
        objects: output.objects.into_iter().map(object).collect(),
        sources: output.sources.into_iter().map(source).collect(),
        warnings: output.warnings,
    }
}
