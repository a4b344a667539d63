//! Generators and transformers that are programs: KRM functions by executable or container image, and
//! kustomize's older exec plugins (kustomize docs, "Extending Kustomize"; KRM Functions Specification v1).
//! None runs unless the injected [`FunctionRunner`] allows it by name; this crate starts no program itself.

pub(crate) mod function_io;
mod legacy;
mod runner;
mod spec;

pub use runner::{FunctionCall, FunctionOutput, FunctionProgram, FunctionRunner};
use tiphys_value::Location;

use crate::{
    context::Context,
    error::{Error, ErrorKind, Result},
    loader::Loader,
    node::to_json,
    resource::Resource,
    resource_map::ResourceMap,
    transform::Transformer,
};

/// The variable that holds the configuration of an exec plugin.
const CONFIG_STRING: &str = "KUSTOMIZE_PLUGIN_CONFIG_STRING";
/// The longest that a variable may be, in bytes, its name and `=` included.
const MOST_VARIABLE: usize = 131_071;

/// A function or exec plugin, configured.
pub(crate) struct Function<'a> {
    /// What is asked for; nothing for an annotation that names no program, which kustomize passes over.
    program: Option<FunctionProgram>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    /// The configuration as YAML.
    config: String,
    /// How texts name it.
    name: String,
    location: Location,
    loader: Loader<'a>,
}

/// Reads a configuration that is none of a builtin.
///
/// # Errors
/// What it asks for is not allowed, or it does not fit.
pub(crate) fn load<'a>(
    config: &Resource,
    loader: &Loader<'a>,
    context: &Context<'_>,
) -> Result<Function<'a>> {
    let Some(runner) = &context.options.function_runner else { return Err(refuse(config, None)) };
    let value = to_json(&config.node).map_err(Error::transform)?;
    let text = tiphys_yaml::to_yaml(&value);
    let mut function = Function {
        program: None,
        args: Vec::new(),
        env: Vec::new(),
        config: text,
        name: format!(
            "api: {}, kind: {}, name: {}",
            config.node.api_version(),
            config.node.object_kind(),
            config.node.name()
        ),
        location: config.location.clone(),
        loader: loader.clone(),
    };
    let id = config.original_id();
    if let Some(spec) = spec::read(&value).map_err(|error| error.context("loader"))? {
        spec.check_mounts(&id)?;
        let Some(program) = spec.program() else { return Ok(function) };
        if runner.find(&program).is_none() {
            return Err(refuse(config, Some(&program)));
        }
        spec.refuse_mounts()?;
        (function.args, function.env) = (spec.args(), spec.env());
        function.program = Some(program);
        return Ok(function);
    }
    let program = FunctionProgram::Plugin {
        api_version: config.node.api_version().to_owned(),
        kind: config.node.object_kind().to_owned(),
    };
    let Some(executable) = runner.find(&program) else { return Err(refuse(config, Some(&program))) };
    function.name = executable;
    function.args = legacy::arguments(&value, loader)
        .map_err(|error| error.context(format!("plugin {id} fails configuration")))?;
    function.program = Some(program);
    Ok(function)
}

/// kustomize's refusal where plugins are not enabled, and what would allow this one.
fn refuse(config: &Resource, program: Option<&FunctionProgram>) -> Error {
    let program = match program {
        Some(program) => Some(program.clone()),
        None => asked_for(config),
    };
    let text = format!(
        "external plugins disabled; unable to load external plugin '{}'",
        config.original_id().gvk.kind
    );
    let error = Error::new(ErrorKind::Unsupported, text);
    let error = match program {
        Some(program) => error.advise(format!(
            "it would run a program: if you trust it, allow it with `--allow-function {}`",
            program.name()
        )),
        None => error,
    };
    error.advise("replace it by builtin transformers, or commit its output")
}

/// What a configuration asks for, if that can be read.
fn asked_for(config: &Resource) -> Option<FunctionProgram> {
    let value = to_json(&config.node).ok()?;
    match spec::read(&value).ok()? {
        Some(spec) => spec.program(),
        None => Some(FunctionProgram::Plugin {
            api_version: config.node.api_version().to_owned(),
            kind: config.node.object_kind().to_owned(),
        }),
    }
}

impl Function<'_> {
    /// What the function generates.
    ///
    /// # Errors
    /// It fails, or prints no objects.
    pub(crate) fn generate(&self, context: &mut Context<'_>) -> Result<Vec<Resource>> {
        let Some(program) = &self.program else { return Ok(Vec::new()) };
        let input = match program {
            FunctionProgram::Plugin { .. } => String::new(),
            _ => function_io::generator_input(&self.config),
        };
        let nodes = self.invoke(program, &input, false, context)?;
        let resource = |node| {
            let mut made = Resource::new(node, self.location.clone(), &context.schemas);
            function_io::take_generator_options(&mut made)?;
            Ok(made)
        };
        nodes.into_iter().map(resource).collect()
    }

    /// Runs the program and reads the objects that it prints; `echoes` says that a failure shows the (empty)
    /// output.
    fn invoke(
        &self,
        program: &FunctionProgram,
        input: &str,
        echoes: bool,
        context: &mut Context<'_>,
    ) -> Result<Vec<crate::node::Node>> {
        let Some(runner) = &context.options.function_runner else { return Ok(Vec::new()) };
        let is_plugin = matches!(program, FunctionProgram::Plugin { .. });
        let mut env = self.env.clone();
        // As kustomize, it is left out where the system would take no variable of that length.
        if is_plugin && self.config.len() + CONFIG_STRING.len() < MOST_VARIABLE {
            env.push((CONFIG_STRING.to_owned(), self.config.clone()));
        }
        let call = FunctionCall {
            program,
            args: &self.args,
            env: &env,
            input,
            config_file: is_plugin.then_some(self.config.as_str()),
            tree: self.loader.tree(),
            folder: self.loader.folder(),
            is_remote: self.loader.is_remote(),
        };
        let tail = if echoes { " " } else { "" };
        let failed = |why: &str| match is_plugin {
            true => Error::transform(format!("{why}{tail}")),
            false => Error::transform(format!("couldn't execute function: {why}{tail}")),
        };
        let done = context.meter.waited().during(|| runner.run(&call)).map_err(|why| failed(&why))?;
        let complaints = done.complaints.trim();
        let told = |error: Error| match complaints {
            "" => error,
            text => error.advise(format!("it printed: {text}")),
        };
        if is_plugin {
            if let Some(failure) = &done.failure {
                let place = &self.location;
                let why = format!("failure in plugin configured via {place}; {failure}");
                return Err(failed(&format!("{}: {why}", done.complaints)));
            }
            return function_io::read_objects(context, &done.output, &self.name);
        }
        let nodes = function_io::read_documents(context, &done.output, &self.name)
            .map_err(|error| told(failed(&error.to_string())))?;
        let results = function_io::results(&done.output, &self.name);
        if let Some(failure) = &done.failure {
            let error = told(failed(failure));
            return Err(results.into_iter().fold(error, |error, result| error.advise(result)));
        }
        context.warnings.extend(results);
        if !complaints.is_empty() {
            context.warnings.push(format!("function {}: {complaints}", self.name));
        }
        function_io::accept(context, nodes, &self.name)
    }
}

impl Transformer for Function<'_> {
    fn transform(&self, objects: &mut ResourceMap, context: &mut Context<'_>) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        let input = match program {
            FunctionProgram::Plugin { .. } => function_io::plugin_input(objects)?,
            _ => function_io::transformer_input(objects, &self.config)?,
        };
        let nodes = self.invoke(program, &input, true, context)?;
        function_io::take_over(objects, nodes, &self.name, &self.location, context)
    }
}
