//! What a stage reads: outputs of other stages, files and folders of the project, addresses.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use avow_model::bind::suffix;
use avow_model::digest::BlobDigest;
use avow_model::plan::{Input, Source};
use avow_model::value::Value;

use super::Cx;
use super::outputs::{Outputs, inside, project_path};
use super::search;
use crate::diagnostic::{Diagnostic, did_you_mean, listed};
use crate::tree::{Entry, Node};

/// One input under construction.
pub(super) struct Given {
    pub(super) input: Input,
    /// Where its name stands.
    pub(super) at: Range<usize>,
    /// Where its source stands.
    pub(super) from: Range<usize>,
    /// The places of fixed and gathered axes: of the axis, and of its value.
    pub(super) axes: Places,
}

/// Where axes are named, and where the value of each.
pub(super) type Places = HashMap<String, (Range<usize>, Range<usize>)>;

/// Stages by name with what they write.
pub(super) type Producers<'a> = BTreeMap<&'a str, &'a Outputs>;

/// Reads the inputs of a stage.
pub(super) fn read(
    cx: &Cx<'_>,
    stage: &Entry,
    producers: &Producers<'_>,
    own: &Outputs,
) -> BTreeMap<String, Given> {
    let mut found = BTreeMap::new();
    for entry in stage.value.get("inputs").map(|n| n.entries()).unwrap_or_default() {
        if let Some(given) = one(cx, entry, producers) {
            found.insert(entry.key.clone(), given);
        }
    }
    collisions(cx, &found, own);
    found
}

fn one(cx: &Cx<'_>, entry: &Entry, producers: &Producers<'_>) -> Option<Given> {
    let mut given = without_licence(cx, entry, producers)?;
    if let Some(named) = entry.value.entry("licence") {
        if matches!(given.input.from, Source::Output { .. } | Source::Probes { .. }) {
            let message = "`licence` is for data from outside, and this is made by a stage";
            let hint = "the licence of the work stands in `CITATION.cff`";
            cx.push(Diagnostic::error("key", named.at.clone(), message).hint(hint));
        }
        given.input.licence = named.value.text().map(str::to_owned);
    }
    Some(given)
}

fn without_licence(cx: &Cx<'_>, entry: &Entry, producers: &Producers<'_>) -> Option<Given> {
    let node = &entry.value;
    if !node.is_map() {
        return resolve(cx, entry, node, node.text()?, producers);
    }
    if let Some(from) = node.get("from") {
        return resolve(cx, entry, from, from.text()?, producers);
    }
    if let Some(path) = node.get("path") {
        return local(cx, entry, path, path.text()?);
    }
    address(cx, entry)
}

/// A text: an output if its first segment names a stage, otherwise a path.
fn resolve(cx: &Cx<'_>, entry: &Entry, node: &Node, text: &str, producers: &Producers<'_>) -> Option<Given> {
    if let Some(diagnostic) = foreign(text, node) {
        cx.push(diagnostic);
        return None;
    }
    if text.starts_with("./") {
        return local(cx, entry, node, text);
    }
    if let Some((stage, output)) = text.split_once('.')
        && let Some(outputs) = producers.get(stage)
    {
        return produced(cx, entry, node, (stage, output), outputs);
    }
    if let Some(search) = search::probes(cx, text) {
        let from = Source::Probes { search: search.to_owned() };
        let input =
            Input { from, mount: format!("inputs/{}.json", entry.key), scoring: false, licence: None };
        let (at, from) = (entry.at.clone(), node.span.clone());
        return Some(Given { input, at, from, axes: HashMap::new() });
    }
    if cx.world.look(text.trim_end_matches('/')).is_none() && outside(text).is_none() {
        cx.push(neither(cx, node, text, producers));
        return None;
    }
    local(cx, entry, node, text)
}

fn outside(text: &str) -> Option<()> {
    (text.starts_with('/') || text.starts_with('~') || text.split('/').any(|s| s == "..")).then_some(())
}

/// Origins that are not yet fetched, and addresses that lack a digest.
fn foreign(text: &str, node: &Node) -> Option<Diagnostic> {
    if text.contains("://") {
        let message = "an address needs the digest of what is expected there";
        let hint = format!("write `{{url: \"{text}\", digest: …}}`; `b3sum FILE` prints the digest");
        return Some(Diagnostic::error("url", node.span.clone(), message).hint(hint));
    }
    let origin = ["hf:", "git:", "doi:"].into_iter().find(|prefix| text.starts_with(prefix))?;
    let message = format!("inputs from `{origin}…` are not yet supported by this version");
    let hint = "fetch it into the project, or give `url` and `digest`";
    Some(Diagnostic::error("not-yet", node.span.clone(), message).hint(hint))
}

/// A name that is neither an output nor a file gets the nearest of both.
fn neither(cx: &Cx<'_>, node: &Node, text: &str, producers: &Producers<'_>) -> Diagnostic {
    let message = format!("`{text}` is neither an output of a stage nor a file of the project");
    let diagnostic = Diagnostic::error("unknown-input", node.span.clone(), message);
    if let Some(outputs) = producers.get(text) {
        let all = outputs.made.keys().map(|name| format!("{text}.{name}"));
        return diagnostic.hint(format!("did you mean {}?", all.collect::<Vec<_>>().join(" or ")));
    }
    // Enough for a hint; a hostile spec must not make it costly.
    const CONSIDERED: usize = 500;
    let outputs = producers
        .iter()
        .flat_map(|(stage, outputs)| outputs.made.keys().map(move |output| format!("{stage}.{output}")));
    let mut known: Vec<String> = outputs.take(CONSIDERED).collect();
    let folder = text.rsplit_once('/').map_or("", |(folder, _)| folder);
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    known.extend(cx.world.names(folder).into_iter().map(|name| format!("{prefix}{name}")));
    diagnostic.maybe_hint(did_you_mean(text, known.iter().map(String::as_str)))
}

fn produced(
    cx: &Cx<'_>,
    entry: &Entry,
    node: &Node,
    (stage, output): (&str, &str),
    outputs: &Outputs,
) -> Option<Given> {
    let Some(made) = outputs.made.get(output) else {
        if outputs.unknown {
            return None;
        }
        let message = format!("the stage `{stage}` has no output `{output}`");
        let whole = format!("{stage}.{output}");
        let hint = if cx.world.look(&whole).is_some() {
            format!("for the file write `./{whole}`")
        } else {
            did_you_mean(output, outputs.made.keys().map(String::as_str))
                .unwrap_or_else(|| format!("it has {}", listed(outputs.made.keys().map(String::as_str))))
        };
        cx.push(Diagnostic::error("unknown-output", node.span.clone(), message).hint(hint));
        return None;
    };
    if !made.output.keep.is_content() {
        let message = format!("`{stage}.{output}` keeps its digest only, so no stage can read it");
        let diagnostic = Diagnostic::error("keep", node.span.clone(), message);
        cx.push(diagnostic.label(made.at.clone(), "declared here").hint("leave `keep: digest` out"));
        return None;
    }
    let mut places = Places::new();
    let (at, gather) = (fixed(cx, entry, &mut places), gathered(entry, &mut places));
    let file = (!made.output.folder && gather.is_empty()).then(|| suffix(&made.output.path)).flatten();
    let mount = format!("inputs/{}{}", entry.key, file.unwrap_or_default());
    let from = Source::Output { stage: stage.to_owned(), output: output.to_owned(), at, gather };
    let scoring = entry.value.get("for").is_some();
    Some(Given {
        input: Input { from, mount, scoring, licence: None },
        at: entry.at.clone(),
        from: node.span.clone(),
        axes: places,
    })
}

fn fixed(cx: &Cx<'_>, entry: &Entry, places: &mut Places) -> BTreeMap<String, Value> {
    let Some(node) = entry.value.get("at") else { return BTreeMap::new() };
    if !node.is_map() {
        let message = "`at` of an output fixes axes";
        let hint = "write `at: {AXIS: VALUE}`";
        cx.push(Diagnostic::error("type", node.span.clone(), message).hint(hint));
    }
    let mut at = BTreeMap::new();
    for axis in node.entries() {
        if let Some(value) = axis.value.value() {
            places.insert(axis.key.clone(), (axis.at.clone(), axis.value.span.clone()));
            at.insert(axis.key.clone(), value);
        }
    }
    at
}

fn gathered(entry: &Entry, places: &mut Places) -> Vec<String> {
    let Some(node) = entry.value.get("gather") else { return Vec::new() };
    let mut axes: Vec<String> = Vec::new();
    for item in node.one_or_more() {
        if let Some(axis) = item.text() {
            places.insert(axis.to_owned(), (item.span.clone(), item.span.clone()));
            axes.push(axis.to_owned());
        }
    }
    axes.sort();
    axes.dedup();
    axes
}

/// Data that stay where they are.
fn referred(cx: &Cx<'_>, entry: &Entry, node: &Node, text: &str) -> Option<Given> {
    let wrong = |message: String, hint: &str| {
        cx.push(Diagnostic::error("path", node.span.clone(), message).hint(hint));
        None
    };
    let path = if text.starts_with('/') {
        let path = text.trim_end_matches('/');
        if path.is_empty() || path.split('/').any(|segment| segment == "..") {
            return wrong(
                format!("`{text}` is no plain path"),
                "give the file or folder itself, without `..`",
            );
        }
        path.to_owned()
    } else if text.starts_with('~') {
        return wrong(format!("`{text}` depends on who runs it"), "give an absolute path");
    } else {
        project_path(cx, node, text)?.0
    };
    if cx.world.look(&path).is_none() {
        let hint = "data kept by reference must be there whenever a stage reads them";
        let message = format!("there is no file or folder `{path}`");
        cx.push(Diagnostic::error("missing-file", node.span.clone(), message).hint(hint));
        return None;
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    let usual = if path.starts_with('/') { last } else { path.as_str() };
    let mount = mount(cx, entry)?.unwrap_or_else(|| usual.to_owned());
    match cx.world.reference(&path) {
        Ok(artifact) => Some(Given {
            input: Input { from: Source::Path { path, artifact }, mount, scoring: false, licence: None },
            at: entry.at.clone(),
            from: node.span.clone(),
            axes: HashMap::new(),
        }),
        Err(reason) => {
            let message = format!("`{path}` cannot be read: {reason}");
            cx.push(Diagnostic::error("missing-file", node.span.clone(), message));
            None
        }
    }
}

fn local(cx: &Cx<'_>, entry: &Entry, node: &Node, text: &str) -> Option<Given> {
    if entry.value.get("keep").and_then(|keep| keep.text()) == Some("reference") {
        return referred(cx, entry, node, text);
    }
    if text.starts_with('/') {
        let message = format!("`{text}` lies outside the project");
        let hint = format!("data elsewhere stay there: `{{path: {text}, keep: reference}}`");
        cx.push(Diagnostic::error("path", node.span.clone(), message).hint(hint));
        return None;
    }
    let (path, _) = project_path(cx, node, text)?;
    for key in ["gather", "for"] {
        if let Some(found) = entry.value.entry(key).filter(|_| entry.value.entry("from").is_some()) {
            let message = format!("`{key}` belongs to an input from a stage, and `{path}` is a path");
            cx.push(Diagnostic::error("key", found.at.clone(), message));
        }
    }
    if cx.world.look(&path).is_none() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let known: Vec<String> = cx.world.names(folder).into_iter().map(|n| format!("{prefix}{n}")).collect();
        let near = did_you_mean(&path, known.iter().map(String::as_str));
        let message = format!("there is no file or folder `{path}`");
        cx.push(Diagnostic::error("missing-file", node.span.clone(), message).maybe_hint(near));
        return None;
    }
    let mount = mount(cx, entry)?.unwrap_or_else(|| path.clone());
    match cx.world.artifact(&path) {
        Ok(artifact) => Some(Given {
            input: Input { from: Source::Path { path, artifact }, mount, scoring: false, licence: None },
            at: entry.at.clone(),
            from: node.span.clone(),
            axes: HashMap::new(),
        }),
        Err(reason) => {
            let message = format!("`{path}` cannot be read: {reason}");
            cx.push(Diagnostic::error("missing-file", node.span.clone(), message));
            None
        }
    }
}

/// The place an author chose for an input; `None` outside means it was chosen wrongly.
#[expect(clippy::option_option, reason = "wrongly given and not given are two things")]
fn mount(cx: &Cx<'_>, entry: &Entry) -> Option<Option<String>> {
    let Some(node) = entry.value.get("at") else { return Some(None) };
    let Some(text) = node.text() else {
        let message = "`at` of a path says where it is mounted";
        cx.push(Diagnostic::error("type", node.span.clone(), message).hint("write `at: other/place`"));
        return None;
    };
    project_path(cx, node, text).map(|(path, _)| Some(path))
}

fn address(cx: &Cx<'_>, entry: &Entry) -> Option<Given> {
    let (url, digest) = (entry.value.get("url")?, entry.value.get("digest"));
    let text = url.text()?;
    let rest = match fetchable(text) {
        Ok(rest) => rest,
        Err(message) => {
            cx.push(Diagnostic::error("url", url.span.clone(), message));
            return None;
        }
    };
    let hex = digest?.text()?;
    let hex = hex.strip_prefix("blake3:").or_else(|| hex.strip_prefix("blob:")).unwrap_or(hex);
    let digest: BlobDigest = hex.parse().ok()?;
    let bare = rest.split(['?', '#']).next().unwrap_or_default();
    let file = bare.split_once('/').and_then(|(_, path)| suffix(path)).unwrap_or_default();
    let plain = file.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
    let mount =
        mount(cx, entry)?.unwrap_or_else(|| format!("inputs/{}{}", entry.key, if plain { file } else { "" }));
    Some(Given {
        input: Input {
            from: Source::Url { url: text.to_owned(), digest },
            mount,
            scoring: false,
            licence: None,
        },
        at: entry.at.clone(),
        from: url.span.clone(),
        axes: HashMap::new(),
    })
}

/// An address without its scheme, or why it would not be fetched. The fetcher has the same rules and the last
/// word; here they come with a line of the spec, before anything runs.
fn fetchable(text: &str) -> Result<&str, String> {
    let (secure, plain) = (text.strip_prefix("https://"), text.strip_prefix("http://"));
    let rest = secure.or(plain).filter(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace));
    let rest = rest.ok_or_else(|| format!("`{text}` is no `https://` address"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        // Not repeated: it may hold a password.
        return Err("the address holds a user name or a password, which would be recorded".to_owned());
    }
    if secure.is_none() && !is_this_machine(authority) {
        return Err(format!("`{text}` is not secure: `http://` is for addresses of this machine only"));
    }
    Ok(rest)
}

/// Whether a host, perhaps with a port, is a loopback address.
fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// No two inputs share a place, and no output is written over an input. In the order of paths whatever lies
/// inside something comes right after it or after another thing inside it, so neighbours tell.
fn collisions(cx: &Cx<'_>, inputs: &BTreeMap<String, Given>, own: &Outputs) {
    let mut places: Vec<(&str, &Range<usize>, bool)> =
        inputs.values().map(|given| (given.input.mount.as_str(), &given.at, true)).collect();
    places.extend(own.made.values().map(|made| (made.output.path.as_str(), &made.at, false)));
    places.sort_by(|a, b| a.0.split('/').cmp(b.0.split('/')).then(a.1.start.cmp(&b.1.start)));
    for pair in places.windows(2) {
        let [(first, a, a_read), (second, b, b_read)] = pair else { continue };
        if !inside(second, first) || !(*a_read || *b_read) {
            continue;
        }
        if *a_read && *b_read {
            let message = format!("two inputs are mounted at `{second}`");
            let hint = "move one: `{path: …, at: other/place}`";
            let diagnostic = Diagnostic::error("collision", (*b).clone(), message);
            cx.push(diagnostic.label((*a).clone(), "the other one").hint(hint));
        } else {
            let (read, written) = if *a_read { (a, b) } else { (b, a) };
            let message = format!("this output would be written over what is read at `{first}`");
            let diagnostic = Diagnostic::error("collision", (*written).clone(), message);
            cx.push(diagnostic.label((*read).clone(), "read here"));
        }
    }
}
