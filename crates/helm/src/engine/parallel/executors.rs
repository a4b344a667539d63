//! Executing a chart's templates on two threads.
//!
//! Templates are executed in an order, since each may change what all share. Hardly any does, and those that
//! do not can be executed in any order. So this thread executes them from the front, in order, and a second
//! one, with values of its own, from the back, until both meet. As soon as either finds that something shared
//! was changed, or a template fails on the second one, all that the second one did is thrown away, and this
//! thread goes on alone from where it is.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::Ordering,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, ScopedJoinHandle},
};

use tiphys_gotemplate::{TemplateSet, Value};

use super::work_split::Range;
use crate::engine::{
    Output, is_notes,
    thread_context::{Executor, Rendering, ThreadContext, is_executed},
};
use crate::{Chart, HelmError, Questions, capabilities::Capabilities, release::Examined};

/// Bytes of templates that are worth a thread, partials left out: few charts execute all of them.
const WORTH_A_THREAD: usize = 64 << 10;

/// Asked for once, and only if it matters: the answer takes a few files.
static HAS_TWO_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|processors| processors.get() > 1));

/// Whether a second thread makes a rendering faster, and nobody but this process hears of it: a cluster would
/// be asked twice.
pub(in crate::engine) fn is_worth_it(rendering: &Rendering<'_>) -> bool {
    rendering.options.lookup.is_none()
        && !rendering.chart.cache.needs_order.load(Ordering::Relaxed)
        && template_bytes(rendering.chart) >= WORTH_A_THREAD
        && *HAS_TWO_PROCESSORS
}

fn template_bytes(chart: &Chart) -> usize {
    let executed = chart.templates.iter().filter(|file| is_executed(&file.name));
    let own: usize = executed.map(|file| file.data().map_or(0, |data| data.len())).sum();
    own + chart.dependencies.iter().map(template_bytes).sum::<usize>()
}

/// Hands out what the templates render to as one thread alone does.
///
/// # Errors
/// As with one thread: that of the first template that does not parse or fails.
pub(in crate::engine) fn render(
    rendering: &Rendering<'_>,
    rendered: impl FnMut(String, Output),
) -> Result<(), HelmError> {
    thread::scope(|scope| {
        let (start, started) = channel();
        let (finish, finished) = channel();
        let second = thread::Builder::new().spawn_scoped(scope, move || second(rendering, &started, finish));
        let result = first(rendering, start, &finished, rendered);
        if let Some(Err(panic)) = second.ok().map(ScopedJoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
        result
    })
}

/// What the second thread waits for.
struct Start {
    set: Arc<TemplateSet>,
    range: Arc<Range>,
}

/// What the second thread hands over if all that it did counts so far.
struct Done {
    /// From the last template on.
    outputs: Vec<(String, Output)>,
    made: u64,
    questions: Questions,
}

/// The second thread's part: nothing if it is not started, and nothing is handed over if it does not count.
fn second(rendering: &Rendering<'_>, start: &Receiver<Start>, finish: Sender<Done>) {
    let questions = Questions::default();
    let capabilities = Capabilities { questions: questions.clone(), ..rendering.capabilities.clone() };
    let rendering = Rendering { capabilities: &capabilities, ..rendering.clone() };
    let world = ThreadContext::new(&rendering, None);
    let Ok(Start { set, range }) = start.recv() else { return };
    let executor = world.executor(set);
    if let Some(outputs) = from_the_back(&executor, &range) {
        // Nobody takes it if the first thread has failed.
        let _ = finish.send(Done { outputs, made: executor.memory_used(), questions });
    }
    // The first thread is not to wait until the world has ended.
    drop(finish);
}

fn from_the_back(executor: &Executor<'_>, range: &Range) -> Option<Vec<(String, Output)>> {
    let changes = Value::changes_of_shared();
    let mut outputs = Vec::new();
    executor.go_to_the_end();
    while let Some(at) = range.next_back() {
        let Some(text) = executor.execute(at, None).ok().filter(|_| changes == Value::changes_of_shared())
        else {
            range.part();
            return None;
        };
        outputs.push((executor.name(at).to_owned(), examined(executor, at, text)));
        executor.go_back_over(at);
    }
    Some(outputs)
}

/// The first thread's part, which has the last word.
fn first(
    rendering: &Rendering<'_>,
    start: Sender<Start>,
    finished: &Receiver<Done>,
    mut rendered: impl FnMut(String, Output),
) -> Result<(), HelmError> {
    let world = ThreadContext::new(rendering, None);
    let set = world.parsed()?;
    let executor = world.executor(set.clone());
    let range = Arc::new(Range::new(executor.len()));
    // Nobody takes it if there is no second thread.
    let _ = start.send(Start { set, range: range.clone() });
    let changes = Value::changes_of_shared();
    meet(rendering, &executor, &range, finished, &mut rendered)?;
    if changes != Value::changes_of_shared() {
        rendering.chart.cache.needs_order.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// Executes templates until both threads meet, and those of the second one, too, if what that did does not
/// count.
fn meet(
    rendering: &Rendering<'_>,
    executor: &Executor<'_>,
    range: &Range,
    finished: &Receiver<Done>,
    rendered: &mut impl FnMut(String, Output),
) -> Result<(), HelmError> {
    from_the_front(executor, range, rendered).inspect_err(|_| range.part())?;
    let done = if range.is_parted() { None } else { finished.recv().ok() };
    let Some(done) = done.filter(|done| is_within_memory(executor, done)) else {
        range.part();
        return from_the_front(executor, range, rendered);
    };
    rendering.capabilities.questions.note_all(&done.questions);
    done.outputs.into_iter().rev().for_each(|(name, output)| rendered(name, output));
    Ok(())
}

fn from_the_front(
    executor: &Executor<'_>,
    range: &Range,
    rendered: &mut impl FnMut(String, Output),
) -> Result<(), HelmError> {
    let changes = Value::changes_of_shared();
    while let Some(at) = range.next() {
        let text = executor.execute(at, None)?;
        if changes != Value::changes_of_shared() {
            range.part();
        }
        // Once there is no second thread that executes templates, another one is free to examine what they
        // render to.
        let output = if range.is_parted() { Output::Text(text) } else { examined(executor, at, text) };
        rendered(executor.name(at).to_owned(), output);
    }
    Ok(())
}

fn examined(executor: &Executor<'_>, at: usize, text: String) -> Output {
    if is_notes(executor.name(at)) {
        Output::Text(text)
    } else {
        Output::Examined(Examined::new(text, executor.compat()))
    }
}

/// Whether both threads together keep the limit of memory, and so does one alone: it makes no more than both.
fn is_within_memory(executor: &Executor<'_>, done: &Done) -> bool {
    executor.memory_used().saturating_add(done.made) <= executor.limits().memory
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use tiphys_gotemplate::Limits;
    use tiphys_vfs::MemTree;

    use super::*;
    use crate::{
        Compat, RenderOptions,
        engine::render_alone,
        values::{Table, coalesce_values},
    };

    /// How many templates there are beside those of the subchart.
    const TEMPLATES: usize = 30;
    const HELPERS: &str = "{{ define \"h\" }}{{ toJson .Values }}{{ .Template.Name }}{{ end }}";
    const TEXT: &str = "a: {{ include \"h\" . | quote }}\nb: {{ randAlphaNum 9 }}\nc: {{ with .Subcharts.s }}{{ toJson .Template }}{{ end }}\n\
                        d: {{ .Capabilities.APIVersions.Has \"x/v1\" }} {{ .Values.missing }}\n\
                        e: {{ range until 20 }}{{ . }}{{ include \"h\" $ | len }}{{ end }}\n\
                        f: {{ keys .Values | sortAlpha | join \",\" }}\n";

    /// A chart whose templates, each named by its place in their order, have something in front of what all
    /// hold.
    fn chart(fronts: &[(usize, &str)]) -> Chart {
        let mut files = vec![
            ("Chart.yaml".to_owned(), "apiVersion: v2\nname: c\nversion: 1.0.0\n".to_owned()),
            ("values.yaml".to_owned(), "n: 1\nm: {a: {b: 1}}\n".to_owned()),
            ("templates/_h.tpl".to_owned(), HELPERS.to_owned()),
            ("charts/s/Chart.yaml".to_owned(), "apiVersion: v2\nname: s\nversion: 1.0.0\n".to_owned()),
            ("charts/s/templates/a.yaml".to_owned(), TEXT.to_owned()),
            ("charts/s/templates/x/b.yaml".to_owned(), TEXT.to_owned()),
            // Executed between those of the subchart.
            ("templates/x/y/aa.yaml".to_owned(), TEXT.to_owned()),
        ];
        for place in 0..TEMPLATES {
            let front = fronts.iter().find(|(at, _)| *at == place).map_or("", |(_, front)| front);
            files.push((format!("templates/{:02}.yaml", TEMPLATES - place), format!("{front}{TEXT}")));
        }
        let tree = MemTree::from_files(files.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        Chart::load_as(&tree, "", Compat::Helm4).expect("the chart loads")
    }

    /// What came of a rendering: outputs and what was asked for, or the error.
    type Came = Result<(String, Vec<String>), String>;

    fn came(
        chart: &Chart,
        memory: u64,
        render: impl FnOnce(&Rendering<'_>, &mut dyn FnMut(String, Output)) -> Result<(), HelmError>,
    ) -> Came {
        let options = RenderOptions { seed: Some("seed".to_owned()), ..RenderOptions::default() };
        let capabilities = Capabilities::from_options(&options).expect("the options are good");
        let values = coalesce_values(chart, &Table::new(), options.compat, &mut Vec::new()).expect("values");
        let limits = Limits { memory, ..Limits::default() };
        let rendering =
            Rendering { chart, values: &values, capabilities: &capabilities, options: &options, limits };
        let mut all = String::new();
        let result = render(&rendering, &mut |name, output| {
            let _ = writeln!(all, "{name}:\n{}", output.into_text());
        });
        let asked = options.questions.answers().into_keys().collect();
        result.map(|()| (all, asked)).map_err(|error| error.to_string())
    }

    fn alone(chart: &Chart, memory: u64) -> Came {
        came(chart, memory, |rendering, rendered| render_alone(rendering, None, rendered))
    }

    fn pair(chart: &Chart, memory: u64) -> Came {
        came(chart, memory, |rendering, rendered| render(rendering, rendered))
    }

    /// Both threads, the first one not before the second one can do no more, and whether what that did
    /// counts.
    fn second_before_first(chart: &Chart, memory: u64) -> (Came, bool) {
        let mut counts = false;
        let came = came(chart, memory, |rendering, mut rendered| {
            let world = ThreadContext::new(rendering, None);
            let set = world.parsed()?;
            let executor = world.executor(set.clone());
            let range = Arc::new(Range::new(executor.len()));
            let (start, started) = channel();
            let (finish, finished) = channel();
            start.send(Start { set, range: range.clone() }).expect("somebody listens");
            thread::scope(|scope| scope.spawn(move || second(rendering, &started, finish)).join())
                .expect("no panic");
            let result = meet(rendering, &executor, &range, &finished, &mut rendered);
            counts = !range.is_parted();
            result
        });
        (came, counts)
    }

    /// Checks that both threads make of a chart what one makes, whichever is the faster; what that is, and
    /// whether what the second one does counts if it does all.
    fn compare(chart: &Chart, memory: u64) -> (Came, bool) {
        let expected = alone(chart, memory);
        let (came_second, counts) = second_before_first(chart, memory);
        assert_eq!(came_second, expected);
        for _ in 0..2 {
            assert_eq!(pair(chart, memory), expected);
        }
        (expected, counts)
    }

    #[test]
    fn templates_that_change_nothing_are_executed_by_both() {
        let chart = chart(&[]);
        let (came, counts) = compare(&chart, u64::MAX);
        let (outputs, asked) = came.expect("it renders");
        assert!(counts && !chart.cache.needs_order.load(Ordering::Relaxed));
        assert_eq!(outputs.matches("\nb: ").count(), TEMPLATES + 3);
        assert_eq!(asked, ["x/v1"]);
    }

    #[test]
    fn templates_see_what_those_before_have_changed() {
        for place in [0, 1, TEMPLATES / 2, TEMPLATES - 2, TEMPLATES - 1] {
            for change in [
                "{{ $_ := set .Values \"n\" \"changed\" }}",
                "{{ $_ := unset .Values.m \"a\" }}",
                "{{ $_ := mergeOverwrite .Values.m (dict \"a\" (dict \"b\" 2)) }}",
                "{{ $_ := set .Template \"Name\" \"changed\" }}",
                "{{ $_ := set . \"new\" 1 }}",
            ] {
                let chart = chart(&[(place, change)]);
                let (came, counts) = compare(&chart, u64::MAX);
                assert!(came.is_ok() && !counts, "{change} at {place}: {came:?}");
                assert!(chart.cache.needs_order.load(Ordering::Relaxed));
            }
        }
    }

    #[test]
    fn what_is_thrown_away_asks_for_nothing() {
        let ask =
            "{{ if eq (toString .Values.n) \"1\" }}{{ .Capabilities.APIVersions.Has \"never/v1\" }}{{ end }}";
        let set = "{{ $_ := set .Values \"n\" 2 }}";
        let (came, counts) = compare(&chart(&[(0, set), (TEMPLATES - 1, ask)]), u64::MAX);
        assert!(!counts);
        assert_eq!(came.expect("it renders").1, ["x/v1"]);
    }

    #[test]
    fn the_first_template_that_fails_is_the_one_that_is_heard_of() {
        let (one, other) = ("{{ fail \"one\" }}", "{{ fail \"other\" }}");
        for (fronts, error) in [
            (vec![(0, one)], "one"),
            (vec![(TEMPLATES / 2, one)], "one"),
            (vec![(TEMPLATES - 1, one)], "one"),
            (vec![(0, one), (TEMPLATES - 1, other)], "one"),
            (vec![(TEMPLATES - 2, one), (TEMPLATES - 1, other)], "one"),
            // One that would not fail if nothing was changed, and one that would.
            (vec![(3, "{{ $_ := unset .Values \"m\" }}"), (20, "{{ .Values.m.a.b }}")], "nil pointer"),
            (vec![(3, "{{ $_ := set .Values \"ok\" 1 }}"), (20, "{{ required \"one\" .Values.ok }}")], ""),
        ] {
            let (came, counts) = compare(&chart(&fronts), u64::MAX);
            assert!(!counts);
            assert_eq!(
                came.as_ref().err().is_some_and(|text| text.contains(error)),
                !error.is_empty(),
                "{came:?}"
            );
        }
    }

    #[test]
    fn the_limit_of_memory_is_that_of_one_thread() {
        let chart = chart(&[]);
        let mut most = 0;
        came(&chart, u64::MAX, |rendering, _| {
            let world = ThreadContext::new(rendering, None);
            let executor = world.executor(world.parsed()?);
            (0..executor.len()).try_for_each(|at| executor.execute(at, None).map(drop))?;
            most = executor.memory_used();
            Ok(())
        })
        .expect("it renders");
        for (memory, fails) in [(1000, true), (most / 2, true), (most - 1, true), (most, false)] {
            let (came, _) = compare(&chart, memory);
            assert_eq!(came.is_err(), fails, "{memory} of {most}");
        }
    }

    #[test]
    fn templates_that_do_not_parse_do_not_start_the_second_thread() {
        let chart = chart(&[(3, "{{ if }}")]);
        let expected = alone(&chart, u64::MAX);
        assert!(expected.is_err());
        assert_eq!(pair(&chart, u64::MAX), expected);
    }
}
