//! What outside witnesses say about a ledger's heads: signatures and time stamps that lie beside it.
//!
//! A proof speaks about a head statement. The statement must be the one that the ledger gives for that entry; then
//! whoever signed or stamped it vouches for everything the entry covers. Whether a key was valid is judged at the time
//! of a trusted stamp over the signature, and where there is none, as of now. Trust is the reader's: without a list of
//! signers or authorities nothing is called verified. Absent: reading files, agents, networks.

use avow_model::digest::RegistrationDigest;
use avow_model::ledger::Ledger;
use avow_proof::{Refusal, Revoked, Signature, Signers, Stamp, namespace, sha256};
use serde::Serialize;

use crate::heads::Cited;

/// The proofs about one entry, as they lie beside the ledger.
#[derive(Clone, Debug, Default)]
pub struct ProofFiles {
    /// The entry, by the name of the statement's file.
    pub entry: String,
    /// The head statement.
    pub statement: Vec<u8>,
    /// Signatures over it, by file name.
    pub signatures: Vec<(String, Vec<u8>)>,
    /// Time stamps over it, or over it and a signature.
    pub stamps: Vec<StampFiles>,
    /// Other files about it, which are shown and not judged.
    pub attached: Vec<String>,
}

/// A time stamp as it lies beside the ledger.
#[derive(Clone, Debug, Default)]
pub struct StampFiles {
    /// The answer's file name.
    pub name: String,
    /// What was asked, where it was kept.
    pub request: Option<Vec<u8>>,
    /// What was answered.
    pub answer: Vec<u8>,
}

/// What a reader believes.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Whose keys are known; nobody's, where there is no such file.
    pub signers: Option<Signers>,
    /// Keys that are no longer trusted.
    pub revoked: Revoked,
    /// The root certificates of time stamping authorities.
    pub authorities: Vec<Vec<u8>>,
    /// The only one whose signature counts, where one is named.
    pub principal: Option<String>,
    /// The time by which a signature without a stamp is judged, in seconds since 1970.
    pub now: i64,
}

/// One proof, checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Its file.
    pub file: String,
    /// The entry that it is about.
    pub entry: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What a proof comes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "proof")]
pub enum Outcome {
    /// Somebody whom the reader knows signed.
    Signed {
        /// Who, as the reader's file says.
        by: String,
        /// The key.
        key: String,
        /// The time of the stamp by which the key was judged, in seconds since 1970.
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<i64>,
        /// For a hardware key, whether it was touched.
        #[serde(skip_serializing_if = "Option::is_none")]
        touched: Option<bool>,
    },
    /// An authority that the reader trusts stamped.
    Stamped {
        /// When, in seconds since 1970.
        time: i64,
        /// Who.
        authority: String,
        /// When its certificate ends, in seconds since 1970; before that, the stamp wants a new one over it.
        ends: i64,
        /// Whether the request was there to compare the nonce with.
        nonce_checked: bool,
        /// The signature that the stamp is over as well.
        #[serde(skip_serializing_if = "Option::is_none")]
        covers: Option<String>,
    },
    /// Well formed, and nobody knows the one who made it.
    Unknown {
        /// What is missing.
        why: String,
    },
    /// It proves nothing.
    Refused {
        /// Why.
        why: String,
    },
    /// Kept, and not judged here.
    Attached,
}

/// The best that trusted witnesses say about an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The earliest trusted stamp over a head that covers it: seconds since 1970, and the authority.
    pub stamped: Option<(i64, String)>,
    /// Who signed such a head.
    pub signed: Vec<String>,
}

/// Checks every proof; heads that statements cite are noted, whether or not the ledger has them.
pub fn check(ledger: &Ledger, files: &[ProofFiles], trust: &Trust, cited: &mut Cited) -> Vec<Checked> {
    let mut all = Vec::new();
    for proof in files {
        let own = match about(ledger, proof, cited) {
            Ok(()) => of_entry(proof, trust),
            Err(why) => {
                let names = proof.signatures.iter().map(|(name, _)| name);
                let names = names.chain(proof.stamps.iter().map(|stamp| &stamp.name));
                names.map(|name| (name.clone(), Outcome::Refused { why: why.clone() })).collect()
            }
        };
        let attached = proof.attached.iter().map(|name| (name.clone(), Outcome::Attached));
        let checked = |(file, outcome)| Checked { file, entry: proof.entry.clone(), outcome };
        all.extend(own.into_iter().chain(attached).map(checked));
    }
    all
}

/// Whether the statement is what the ledger says about the entry.
fn about(ledger: &Ledger, proof: &ProofFiles, cited: &mut Cited) -> Result<(), String> {
    let Ok(entry) = proof.entry.parse::<RegistrationDigest>() else {
        return Err("its file is not named after a line of the ledger".to_owned());
    };
    cited.add(entry, format!("the proof {}.head.json", proof.entry));
    match ledger.head_statement(entry) {
        None => Err("the ledger lacks the line that it is about".to_owned()),
        Some(statement) if statement.as_bytes() != proof.statement => {
            Err("the statement is not what this ledger says about the line".to_owned())
        }
        Some(_) => Ok(()),
    }
}

fn of_entry(proof: &ProofFiles, trust: &Trust) -> Vec<(String, Outcome)> {
    let stamps: Vec<(String, Outcome)> =
        proof.stamps.iter().map(|stamp| (stamp.name.clone(), stamped(proof, stamp, trust))).collect();
    let over = |name: &str| {
        let times = stamps.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Stamped { time, covers: Some(covers), .. } if covers == name => Some(*time),
            _ => None,
        });
        times.min()
    };
    let signatures = proof.signatures.iter().map(|(name, bytes)| {
        (name.clone(), signed(bytes, namespace::HEAD, &proof.statement, over(name), trust))
    });
    let signatures: Vec<_> = signatures.collect();
    signatures.into_iter().chain(stamps).collect()
}

/// What a signature over bytes comes to by what a reader trusts. `purpose` is its namespace; `at` the time of a trusted
/// stamp over it, in seconds since 1970.
pub fn signed(file: &[u8], purpose: &str, statement: &[u8], at: Option<i64>, trust: &Trust) -> Outcome {
    let signature = match Signature::verify(file, purpose, statement) {
        Ok(signature) => signature,
        Err(refusal @ Refusal::Unsupported(_)) => return Outcome::Unknown { why: refusal.to_string() },
        Err(refusal) => return Outcome::Refused { why: refusal.to_string() },
    };
    if let Err(refusal) = trust.revoked.check(&signature.key) {
        return Outcome::Refused { why: refusal.to_string() };
    }
    let key = signature.fingerprint();
    let Some(signers) = &trust.signers else {
        return Outcome::Unknown { why: format!("by the key {key}, which no list of signers names") };
    };
    match signers.allows(&signature, trust.principal.as_deref(), at.unwrap_or(trust.now)) {
        Ok(by) => Outcome::Signed { by, key, at, touched: signature.touched },
        Err(refusal) => Outcome::Refused { why: refusal.to_string() },
    }
}

fn stamped(proof: &ProofFiles, stamp: &StampFiles, trust: &Trust) -> Outcome {
    if trust.authorities.is_empty() {
        return Outcome::Unknown { why: "no authority is trusted; name its root certificate".to_owned() };
    }
    let verify = |imprint: [u8; 32]| {
        Stamp::verify(&stamp.answer, stamp.request.as_deref(), &imprint, &trust.authorities, &[])
    };
    let mut refusal = Refusal::Imprint;
    let with_signatures = proof.signatures.iter().map(|(name, bytes)| (Some(name), &bytes[..]));
    for (covers, signature) in with_signatures.chain([(None, &[][..])]) {
        match verify(sha256(&[&proof.statement, signature])) {
            Ok(Stamp { time, authority, ends, nonce_checked, .. }) => {
                return Outcome::Stamped { time, authority, ends, nonce_checked, covers: covers.cloned() };
            }
            // Another candidate may fit; what is wrong beside the imprint is wrong for all.
            Err(Refusal::Imprint) => {}
            Err(other) => refusal = other,
        }
    }
    Outcome::Refused { why: refusal.to_string() }
}

/// What trusted witnesses say about an entry: those of every head that covers it.
pub fn of(ledger: &Ledger, entry: RegistrationDigest, checked: &[Checked]) -> Option<Witness> {
    let covering = checked.iter().filter(|proof| {
        proof.entry.parse().is_ok_and(|head: RegistrationDigest| ledger.precedes(entry, head))
    });
    let mut witness = Witness::default();
    for proof in covering {
        match &proof.outcome {
            Outcome::Stamped { time, authority, .. }
                if witness.stamped.as_ref().is_none_or(|(known, _)| time < known) =>
            {
                witness.stamped = Some((*time, authority.clone()));
            }
            Outcome::Signed { by, .. } if !witness.signed.contains(by) => witness.signed.push(by.clone()),
            _ => {}
        }
    }
    (witness != Witness::default()).then_some(witness)
}
