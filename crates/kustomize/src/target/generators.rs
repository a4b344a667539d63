//! Running generators: those of the kustomization's own fields, then those in files.

use tiphys_value::OriginKind;

use super::{Accumulator, Target};
use crate::{
    context::Context,
    error::{Context as _, Error, Result},
    generate::{self, DataKind, HelmGenerator},
    kustomization::model::{GeneratorArgs, HelmChart},
    plugins::{self, ConfiguredGenerator, Generator},
    provenance::{Provenance, set_origin},
    reader::{Text, read_objects},
    resource::Resource,
    resource_map::{Names, ResourceMap},
};

impl<'a> Target<'a> {
    /// Runs all generators and takes over what they make.
    ///
    /// # Errors
    /// Configurations that do not fit, sources that cannot be read, ids that clash.
    pub(super) fn run_generators(&mut self, all: &mut Accumulator, context: &mut Context<'_>) -> Result<()> {
        let mut generators = self.own_generators(context)?;
        let entries = std::mem::take(&mut self.k.generators);
        if !entries.is_empty() {
            let configs = self
                .plugin_configs(&entries, "generators", context)
                .context(|| "loading generator plugins")?;
            let more = plugins::generators(&configs, &self.loader, context)
                .context(|| "loading generator plugins")?;
            generators.extend(more);
        }
        let mut names = Names::from_objects(&all.objects);
        for generator in generators {
            let mut made = ResourceMap::default();
            let generated = self.generate(&generator, context);
            if generated.as_ref().is_err_and(|error| context.may_skip(error)) {
                continue;
            }
            made.append(generated.map_err(|error| error.located_at(Some(generator.location.clone())))?)?;
            if let Some(provenance) = &generator.provenance {
                for resource in &mut made.list {
                    set_origin(&mut resource.node, provenance).map_err(Error::transform)?;
                }
            }
            for resource in &mut made.list {
                let location = &generator.location;
                context.tracker.stamp(&mut resource.node, generator.writer, location.line, location.column);
            }
            all.objects.absorb(made.list, &mut names).context(|| "merging from generator &{}")?;
            crate::transform::finish(&mut all.objects, context, generator.writer, &generator.location);
            context.check_objects(all.objects.list.len())?;
        }
        Ok(())
    }

    fn generate(
        &self,
        generator: &ConfiguredGenerator<'a>,
        context: &mut Context<'_>,
    ) -> Result<Vec<Resource>> {
        let location = &generator.location;
        match &generator.generator {
            Generator::Data(kind, args) => {
                Ok(vec![generate::make_data(*kind, args, &self.loader, location, context)?])
            }
            Generator::Helm(helm) => {
                generate::inflate(helm, &self.loader, location, generator.writer, context)
            }
            Generator::Function(function) => function.generate(context),
            Generator::Iam(policy) => Ok(vec![generate::make_iam_policy(policy, location, context)?]),
        }
    }

    /// `configMapGenerator`, `secretGenerator` and `helmCharts`.
    fn own_generators(&mut self, context: &mut Context<'_>) -> Result<Vec<ConfiguredGenerator<'a>>> {
        let mut generators = Vec::new();
        let data = [
            (DataKind::ConfigMap, "configMapGenerator", "ConfigMapGenerator", &self.k.config_map_generator),
            (DataKind::Secret, "secretGenerator", "SecretGenerator", &self.k.secret_generator),
        ];
        for (kind, field, name, list) in data {
            for (index, args) in list.iter().enumerate() {
                let options =
                    generate::merge_options(args.options.as_ref(), self.k.generator_options.as_ref());
                let args = GeneratorArgs { options, ..args.clone() };
                generators.push(self.generator_config(
                    Generator::Data(kind, args),
                    (field, index),
                    name,
                    context,
                ));
            }
        }
        let globals = self.k.helm_globals.clone().unwrap_or_default();
        for (index, chart) in self.k.helm_charts.iter().enumerate() {
            let inherited =
                if self.k.namespace.is_empty() { &self.helm_namespace } else { &self.k.namespace };
            let namespace =
                if chart.namespace.is_empty() { inherited.clone() } else { chart.namespace.clone() };
            let helm =
                HelmGenerator { chart: HelmChart { namespace, ..chart.clone() }, globals: globals.clone() };
            helm.check(&self.loader, context).map_err(|error| {
                self.configuring(error, "HelmChartInflationGenerator", &helm.config(), ("helmCharts", index))
            })?;
            let generator = Generator::Helm(Box::new(helm));
            generators.push(self.generator_config(
                generator,
                ("helmCharts", index),
                "HelmChartInflationGenerator",
                context,
            ));
        }
        Ok(generators)
    }

    fn generator_config(
        &self,
        generator: Generator<'a>,
        (field, index): (&str, usize),
        name: &str,
        context: &mut Context<'_>,
    ) -> ConfiguredGenerator<'a> {
        let provenance = self.builtin_provenance(name);
        let location = self.locate(&[field, &index.to_string()]);
        let writer = context.tracker.writer(OriginKind::Generator, &self.source.file, field);
        ConfiguredGenerator { generator, provenance, location, writer }
    }

    pub(super) fn builtin_provenance(&self, kind: &str) -> Option<Provenance> {
        self.provenance.as_ref().map(|provenance| provenance.builtin(self.file_name, kind))
    }

    /// Names the builtin whose configuration failed, as kustomize does.
    pub(super) fn configuring(
        &self,
        error: Error,
        kind: &str,
        config: &str,
        (field, index): (&str, usize),
    ) -> Error {
        let place = self.locate(&[field, &index.to_string()]);
        error
            .context(format!("trouble configuring builtin {kind} with config: `\n{config}`"))
            .located_at(Some(place))
    }

    /// Configurations of plugins: inline objects first, then files and folders.
    pub(super) fn plugin_configs(
        &mut self,
        entries: &[String],
        field: &str,
        context: &mut Context<'_>,
    ) -> Result<Vec<Resource>> {
        let mut configs = Accumulator::default();
        let mut paths = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let location = self.locate(&[field, &index.to_string()]);
            let source = Text { text: entry, file: &self.source.file, line_offset: location.line, writer: 0 };
            let Ok(nodes) = read_objects(context, source) else {
                paths.push(entry.clone());
                continue;
            };
            let mut inline: Vec<Resource> = nodes
                .into_iter()
                .map(|node| Resource::new(node, location.clone(), &context.schemas))
                .collect();
            if let Some(provenance) = &self.provenance {
                let provenance = provenance.append(self.file_name);
                for resource in &mut inline {
                    set_origin(&mut resource.node, &provenance).map_err(Error::transform)?;
                }
            }
            let plugin = if field == "generators" { "generator" } else { "transformer" };
            configs.objects.append(inline).context(|| format!("configuring external {plugin}"))?;
        }
        self.add_resources(&mut configs, &paths, field, context)?;
        Ok(configs.objects.list)
    }
}
