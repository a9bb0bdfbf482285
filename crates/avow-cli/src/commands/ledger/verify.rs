//! `avow ledger verify`: a ledger against every copy of a later head, or a proof by itself.

use std::collections::BTreeSet;
use std::path::Path;

use avow_audit::Finding;
use avow_audit::heads::Cited;
use avow_audit::integrity::{missing_lines, unannounced};
use avow_audit::witness::Outcome;
use avow_model::ledger::Ledger;
use avow_model::ledger::proof::Proof;
use serde_json::json;

use super::Chain;
use crate::args;
use crate::commands::verdict::damage_of;
use crate::context::Reading;
use crate::exit::Exit;
use crate::git;
use crate::output::{Failure, Output};
use crate::settings::Settings;
use crate::witnesses;
use crate::words::{self, finding};

/// Verifies.
pub fn verify(args: &args::LedgerVerify, output: &Output) -> Result<Exit, Failure> {
    match &args.proof {
        Some(path) => proof(path, args.statement.as_deref(), args.ledger.json, output),
        None => ledger(args, output),
    }
}

fn ledger(args: &args::LedgerVerify, output: &Output) -> Result<Exit, Failure> {
    let chain = Chain::even_if_gone(args.ledger.experiment.as_deref())?;
    let ledger = &chain.ledger;
    let journals = Reading::open(&chain.project, &chain.experiment)?.journals()?;
    let mut cited = Cited::default();
    cited.by_journals(&chain.experiment, &journals);
    let runs = journals.len();
    let commits = by_git(&chain, &mut cited);
    let trust = witnesses::trust(&chain.project, &Settings::of(&chain.project)?, Some(&args.trust))?;
    let proofs = witnesses::checked(&chain.project, &chain.experiment, ledger, &trust, &mut cited)?;
    let refused = proofs.iter().any(|proof| matches!(proof.outcome, Outcome::Refused { .. }));
    let mut findings: BTreeSet<Finding> =
        avow_audit::registration::ledger_findings(ledger).into_iter().collect();
    findings.extend(cited.missing(ledger));
    // A clone has the ledger and none of the journals, which are not under version control.
    if !journals.is_empty() {
        findings.extend(missing_lines(ledger, &journals));
        findings.extend(unannounced(&chain.experiment, ledger, &journals));
    }
    let findings: Vec<Finding> = findings.into_iter().filter(Finding::is_damage).collect();
    let whole = |exit: Exit| if refused { exit.worse(Exit::Damaged) } else { exit };
    if args.ledger.json {
        output.json(&json!({
            "proofs": proofs, "experiment": chain.experiment, "chain": ledger.chain(), "lines": ledger.entries().len(),
            "heads": ledger.heads(), "cited": cited.len(), "findings": findings,
        }))?;
        return Ok(whole(if findings.is_empty() { Exit::Done } else { Exit::Damaged }));
    }
    let lines = ledger.entries().len();
    output.data(format!(
        "{}: {lines} line{}, {} head{}",
        chain.experiment,
        if lines == 1 { "" } else { "s" },
        ledger.heads().len(),
        if ledger.heads().len() == 1 { "" } else { "s" },
    ))?;
    if findings.is_empty() {
        output.data(format!(
            "sound; every one of {} heads that {runs} runs and {commits} commits cite is there",
            cited.len()
        ))?;
    }
    for proof in &proofs {
        output.data(words::witness::line(proof))?;
    }
    let exit = whole(damage_of(&findings, &[], output));
    for missing in findings.iter().filter(|f| matches!(f, Finding::MissingHead { .. })).take(1) {
        output.say(format!("{}; if it is on another branch, merge that branch", finding::words(missing)));
    }
    Ok(exit)
}

/// Heads of every version of the ledger that git has, and those that tags name; how many versions there are.
fn by_git(chain: &Chain, cited: &mut Cited) -> usize {
    let root = chain.project.root();
    let pattern = format!("refs/tags/avow/{}/", chain.experiment);
    let tags = git::ask(root, &["for-each-ref", "--format=%(refname:short) %(contents:subject)", &pattern]);
    for tag in tags.unwrap_or_default().lines() {
        // NAME avow-head ENTRY ROOT SIZE
        let words: Vec<&str> = tag.split(' ').collect();
        if let [name, "avow-head", entry, ..] = words[..]
            && let Ok(entry) = entry.parse()
        {
            cited.add(entry, format!("the tag {name}"));
        }
    }
    let path = chain.file.path();
    let Ok(path) = path.strip_prefix(root) else { return 0 };
    let versions = git::versions(root, &path.to_string_lossy());
    for version in &versions {
        for head in Ledger::read(&version.bytes).heads() {
            cited.add(head, format!("commit {}", &version.commit[..version.commit.len().min(12)]));
        }
    }
    versions.len()
}

fn proof(path: &Path, statement: Option<&Path>, as_json: bool, output: &Output) -> Result<Exit, Failure> {
    let text = read(path)?;
    let proof: Proof = serde_json::from_str(&text).map_err(|error| {
        Failure::new(Exit::Usage, format!("`{}` is no proof", path.display()))
            .because(error)
            .hint("`avow ledger prove` writes one")
    })?;
    let stated = statement.map(read).transpose()?;
    let head = proof.head();
    let fault = match (proof.check(), &stated) {
        (Err(error), _) => Some(error.to_string()),
        (Ok(()), Some(stated)) if !head.is_stated_by(stated) => {
            Some(format!("it leads to the head {}, which is not the one stated", head.entry))
        }
        _ => None,
    };
    if as_json {
        output.json(&json!({"holds": fault.is_none(), "fault": fault, "head": head}))?;
    } else {
        match &fault {
            None => output.data(format!("the proof holds: {}", proven(&proof)))?,
            Some(fault) => output.data(format!("the proof does not hold: {fault}"))?,
        }
        if fault.is_none() && stated.is_none() {
            output.say(format!(
                "it is worth as much as your copy of the head {}; compare it with a statement: `--statement FILE`",
                head.entry
            ));
        }
    }
    Ok(if fault.is_none() { Exit::Done } else { Exit::Damaged })
}

fn proven(proof: &Proof) -> String {
    let head = proof.head();
    match proof {
        Proof::Inclusion { line, index, .. } => {
            let leaf = avow_model::ledger::leaf(line.as_bytes());
            format!(
                "{} is line {} of the {} that {} covers",
                leaf.short(),
                index + 1,
                head.size,
                head.entry.short()
            )
        }
        Proof::Consistency { old, new, .. } | Proof::Ancestry { old, new, .. } => format!(
            "the {} lines that {} covers are among the {} that {} covers",
            old.size,
            old.entry.short(),
            new.size,
            new.entry.short()
        ),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read `{}`", path.display())).because(error)
    })
}
