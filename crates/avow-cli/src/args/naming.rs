//! How the command that was given would be given with a spec: some take it as it is, some after `--spec`.

use std::ffi::OsString;

use clap::{ArgMatches, Command, CommandFactory as _};

use super::Cli;

/// The command line `given`, in short, with the spec `spec`: `avow run spec.yaml`, `avow invalidate … --spec spec.yaml`.
pub fn naming(given: impl IntoIterator<Item = OsString>, spec: &str) -> String {
    let program = Cli::command();
    let Ok(matches) = program.clone().try_get_matches_from(given) else { return format!("avow run {spec}") };
    let (words, leaf) = named(&program, &matches);
    let named = leaf.get_arguments().any(|argument| argument.get_long() == Some("spec"));
    let others = leaf.get_positionals().any(|argument| argument.is_required_set());
    let words = words.join(" ");
    match (named, others) {
        (true, true) => format!("avow {words} … --spec {spec}"),
        (true, false) => format!("avow {words} --spec {spec}"),
        (false, _) => format!("avow {words} {spec}"),
    }
}

/// The words of the subcommands that were given, and the last of them.
fn named<'c>(program: &'c Command, matches: &ArgMatches) -> (Vec<String>, &'c Command) {
    let (mut words, mut command, mut matches) = (Vec::new(), program, matches);
    while let Some((word, inner)) = matches.subcommand()
        && let Some(next) = command.find_subcommand(word)
    {
        words.push(word.to_owned());
        (command, matches) = (next, inner);
    }
    (words, command)
}
