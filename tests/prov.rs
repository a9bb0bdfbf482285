//! PROV-JSON that the public library reads, and that says what was done.

use avow_testkit::{Sandbox, Validators};

const SPEC: &str = "\
avow: 1
experiment: told
axes: {seed: [1, 2]}
stages:
  make:
    run: [sh, make.sh, '${axes.seed}', '${outputs.parts}']
    inputs: {words: words.txt}
    outputs: {parts: parts/}
  score:
    run: [sh, -c, 'printf \"{\\\"value\\\": 1.5}\" > \"$1\"', x, '${outputs.result}']
    inputs: {all: {from: make.parts, gather: seed}}
    measurements: {result: result.json}
  breaks:
    run: [sh, -c, 'exit 3']
    inputs: {words: words.txt}
    outputs: {never: never.txt}
";

fn done() -> Sandbox {
    let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_avow"));
    sandbox.file("avow.toml", "").file("spec.yaml", SPEC).file("words.txt", "one\n");
    sandbox.file("make.sh", "mkdir -p \"$2\"\necho \"part $1\" > \"$2/part.txt\"\n");
    sandbox.file("CITATION.cff", "authors: [{given-names: Ada, family-names: Lovelace}]\n");
    sandbox.avow(&["run", "-q", "-k"]).expect_code(1);
    sandbox
}

/// What the public library makes of it: it must come out of it as it went in, and hold what was done.
const READER: &str = "\
import sys, hashlib
from prov.model import (ProvDocument, ProvEntity, ProvActivity, ProvAgent, ProvUsage, ProvGeneration,
                        ProvAssociation, ProvDerivation, ProvMembership, ProvAttribution)
text = open(sys.argv[1]).read()
document = ProvDocument.deserialize(content=text, format='json')
again = ProvDocument.deserialize(content=document.serialize(format='json'), format='json')
assert document == again
document.get_provn()
def of(kind):
    return list(document.get_records(kind))
activities = {str(next(iter(a.get_attribute('prov:label')))): a for a in of(ProvActivity)}
assert sorted(activities) == ['breaks', 'make[seed=1]', 'make[seed=2]', 'score'], sorted(activities)
broke = activities['breaks']
assert [str(o) for o in broke.get_attribute('avow:outcome')] == ['failed: exit code 3']
assert [str(s) for s in broke.get_attribute('avow:stands')] in (['False'], ['false'])
assert broke.get_startTime() <= broke.get_endTime()
assert [s.value for s in activities['make[seed=2]'].get_attribute('avow:axis-seed')] == ['2']
entities = {str(e.identifier): e for e in of(ProvEntity)}
words = [e for e in entities.values() if 'words.txt' in [str(l) for l in e.get_attribute('prov:label')]]
assert len(words) == 1, words
assert [str(s) for s in words[0].get_attribute('avow:sha256')] == [hashlib.sha256(b'one\\n').hexdigest()]
def pairs(kind):
    return {(str(r.args[0]), str(r.args[1])) for r in of(kind)}
make1 = str(activities['make[seed=1]'].identifier)
assert (make1, str(words[0].identifier)) in pairs(ProvUsage)
assert (str(broke.identifier), str(words[0].identifier)) in pairs(ProvUsage)
made = {entity for entity, activity in pairs(ProvGeneration) if activity == make1}
assert len(made) == 1, made
# From the words to the score: generation, membership of the gathered folder, use.
gathered = {entity for activity, entity in pairs(ProvUsage) if activity == str(activities['score'].identifier)}
members = {member for folder, member in pairs(ProvMembership) if folder in gathered}
parts = {member for folder, member in pairs(ProvMembership) if folder in made}
assert parts and parts <= members, (parts, members)
assert (next(iter(made)), str(words[0].identifier)) in pairs(ProvDerivation)
assert len(of(ProvAssociation)) == 4
agents = {str(next(iter(a.get_attribute('prov:label')))) for a in of(ProvAgent)}
assert agents == {'Avow', 'Ada Lovelace'}, agents
assert len(of(ProvAttribution)) == 1
print('read')
";

#[test]
fn the_public_library_reads_what_was_done() {
    let sandbox = done();
    let Some(validators) = Validators::find() else { return };
    sandbox.avow(&["export", "prov", "-o", "told.json"]).expect_code(0);
    assert_eq!(validators.python(&sandbox, READER, &["told.json"]).trim(), "read");
    let turned = validators
        .command(&sandbox, "prov-convert")
        .args(["-f", "provn", "told.json", "told.provn"])
        .output();
    assert!(turned.unwrap().status.success());
    assert!(sandbox.read("told.provn").contains("activity(avow:attempt-"));
}

#[test]
fn it_is_printed_or_written_and_nothing_is_overwritten() {
    let sandbox = done();
    let printed = sandbox.avow(&["export", "prov"]).with_code(0).json();
    sandbox.avow(&["export", "prov", "-o", "told.json"]).expect_code(0);
    let written: serde_json::Value = serde_json::from_str(&sandbox.read("told.json")).unwrap();
    assert_eq!(printed, written);
    assert_eq!(printed["activity"].as_object().unwrap().len(), 4);
    let refused = sandbox.avow(&["export", "prov", "-o", "told.json"]).with_code(2);
    assert!(refused.stderr.contains("exists already"), "{}", refused.stderr);
}
