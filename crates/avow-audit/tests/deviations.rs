//! What differs from what was registered, and when values stay hidden.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;

use avow_audit::deviation::{Class, What, When, covered};
use avow_audit::planned::Subject;
use avow_audit::{Report, Standing, Word};
use avow_model::attempt::{Failure, Outcome};
use avow_model::axis::Points;
use avow_model::claim::{Claim, Method, Part};
use avow_model::op::Kind;
use avow_model::plan::{Input, MeasurementFormat, Plan, Source};
use avow_model::value::Value;
use common::*;

fn helps() -> Claim {
    claim("helps", one(Part { compare: wd(), ..part(difference(above(0.0), Method::T)) }))
}

fn planned() -> Plan {
    let axes = vec![seeds(8), axis("wd", &[0.0, 0.1])];
    plan(axes, vec![stage("train", &["seed", "wd"], MeasurementFormat::FlatJson)], vec![helps()])
}

fn run_all(lab: &mut Lab) {
    lab.run("train", |cell| Some(accuracy(standard_value(cell))));
}

fn classes(report: &Report) -> Vec<(Class, When)> {
    report.deviations.iter().map(|d| (d.class, d.when)).collect()
}

#[test]
fn a_plan_carried_out_as_registered_is_confirmatory() {
    let mut lab = Lab::new(planned());
    lab.register(&planned());
    run_all(&mut lab);
    let report = lab.audit();
    assert_eq!((report.standing, report.hidden), (Standing::Confirmatory, false));
    assert_eq!((report.deviations.as_slice(), report.findings.as_slice()), ([].as_slice(), [].as_slice()));
    assert_eq!(report.verdicts[0].standing, Standing::Confirmatory);
    let unregistered = standard(vec![helps()]).audit();
    assert_eq!(unregistered.verdicts[0].standing, Standing::Exploratory);
}

#[test]
fn attempts_older_than_the_registration_are_named() {
    let mut lab = Lab::new(planned());
    for cell in [0, 5] {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(0.9));
    }
    lab.register(&planned());
    for cell in (0..16).filter(|cell| ![0, 5].contains(cell)) {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(0.8));
    }
    let report = lab.audit();
    assert_eq!(classes(&report), [(Class::OlderThanRegistration, When::BeforeRegistration)]);
    let What::OlderAttempts { stage, members } = &report.deviations[0].what else { panic!() };
    assert_eq!(stage, "train");
    assert_eq!(members, &["train[seed=0,wd=0]", "train[seed=2,wd=0.1]"]);
    assert_eq!(report.verdicts[0].deviations, [0]);
    // A new attempt under the registration stands instead, and the old one is a divergence.
    for cell in [0, 5] {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(0.85));
    }
    let report = lab.audit();
    assert_eq!(classes(&report), [(Class::Divergence, When::After); 2]);
    let What::Outputs { artifacts, member, .. } = &report.deviations[0].what else { panic!() };
    assert_eq!((artifacts.len(), member.as_str()), (2, "train[seed=0,wd=0]"));
    let standing = lab.evidence().member(lab.member("train", 0)).unwrap().attempts[1].attempt;
    assert_eq!(artifacts[0].1, standing);
}

#[test]
fn preparation_may_be_older_and_what_reads_results_may_not() {
    let input = |stage: &str| Input {
        from: Source::Output {
            stage: stage.to_owned(),
            output: "result".to_owned(),
            at: BTreeMap::new(),
            gather: vec![],
        },
        mount: format!("inputs/{stage}"),
        scoring: false,
        licence: None,
    };
    let mut split = stage("split", &[], MeasurementFormat::FlatJson);
    split.measurements.clear();
    let mut tune = stage("tune", &[], MeasurementFormat::FlatJson);
    tune.kind = Some(Kind::Calibrate);
    tune.measurements.clear();
    tune.inputs.insert("split".to_owned(), input("split"));
    let mut train = stage("train", &["seed"], MeasurementFormat::FlatJson);
    train.inputs.insert("tune".to_owned(), input("tune"));
    let aside = stage("aside", &["seed"], MeasurementFormat::FlatJson);
    let claims = vec![claim("high", one(part(mean(above(0.5), Method::T))))];
    let plan = plan(vec![seeds(4)], vec![split, tune, train, aside], claims);
    let names: Vec<&str> = covered(&plan).into_iter().map(|i| plan.stages[i].name.as_str()).collect();
    assert_eq!(names, ["train", "tune"]);
    let mut lab = Lab::new(plan.clone());
    lab.run("split", |_| Some("split".to_owned()));
    lab.run("tune", |_| Some("tuned".to_owned()));
    lab.run("aside", |_| Some(accuracy(0.1)));
    lab.register(&plan);
    lab.run("train", |cell| Some(accuracy(0.9 + cell.index("seed").unwrap() as f64 / 100.0)));
    let report = lab.audit();
    let older: Vec<&str> =
        report
            .deviations
            .iter()
            .map(|d| {
                if let What::OlderAttempts { stage, .. } = &d.what { stage.as_str() } else { panic!("{d:?}") }
            })
            .collect();
    assert_eq!(older, ["tune"]);
    assert_eq!(report.verdicts[0].word, Some(Word::Supported));
}

#[test]
fn a_changed_plan_is_exploratory_and_shows_every_difference() {
    let old = planned();
    let mut new = planned();
    new.params.insert("n".to_owned(), Value::Int(200));
    new.axes[0].points = Points::List((0..10).map(Value::Int).collect());
    new.claims[0].says = Some("otherwise".to_owned());
    new.claims[0].alpha = "0.10".to_owned();
    new.claims.push(claim("more", one(part(mean(above(0.5), Method::T)))));
    new.stages[0].code = Some(avow_model::digest::TreeDigest::from_bytes([7; 32]));
    let mut lab = Lab::new(new);
    lab.register(&old);
    let report = lab.audit();
    assert_eq!((report.standing, report.hidden), (Standing::Exploratory, false));
    let changes: Vec<(Class, When, Subject, String)> = report
        .deviations
        .iter()
        .filter_map(|d| match &d.what {
            What::Plan(c) => Some((d.class, d.when, c.subject, c.path.join("."))),
            _ => None,
        })
        .collect();
    let early = When::BeforeFirstAttempt;
    let expected = [
        (Class::Amendment, early, Subject::Param, ""),
        (Class::Addition, early, Subject::Axis, "list"),
        (Class::Amendment, early, Subject::Stage, "code"),
        (Class::Amendment, early, Subject::Claim, "alpha"),
        (Class::Clarification, early, Subject::Claim, "says"),
        (Class::Addition, early, Subject::Claim, ""),
    ];
    assert_eq!(changes, expected.map(|(c, w, s, p)| (c, w, s, p.to_owned())));
    let What::Plan(alpha) = &report.deviations[3].what else { panic!() };
    assert_eq!((alpha.old.as_ref().unwrap(), alpha.new.as_ref().unwrap()), (&"0.05".into(), &"0.10".into()));
    // The other claim's words do not concern this one.
    let more = report.verdicts.iter().find(|v| v.claim == "more").unwrap();
    assert!(!more.deviations.contains(&4) && more.deviations.contains(&0) && more.deviations.contains(&5));
    // After an attempt under the registration the same changes are late.
    let member = lab.member("train", 0);
    lab.succeed(member, &accuracy(0.9));
    let late: Vec<When> = lab.audit().deviations.iter().map(|d| d.when).collect();
    assert!(late.iter().all(|when| *when == When::After), "{late:?}");
}

#[test]
fn registering_the_same_plan_again_ages_nothing() {
    let mut lab = Lab::new(planned());
    let first = lab.register(&planned());
    run_all(&mut lab);
    lab.register(&planned());
    let report = lab.audit();
    assert_eq!((report.standing, report.deviations.as_slice()), (Standing::Confirmatory, [].as_slice()));
    assert_eq!(report.registration.unwrap().leaf, first);
}

#[test]
fn an_incomplete_registered_plan_hides_its_values() {
    let mut lab = Lab::new(planned());
    lab.register(&planned());
    for cell in 0..15 {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(0.9));
    }
    let last = lab.member("train", 15);
    for (outcome, hidden) in
        [(Outcome::Lost, true), (Outcome::Cancelled, true), (Outcome::Failed(Failure::Exit(1)), false)]
    {
        lab.attempt(last, outcome, None);
        let report = lab.audit();
        assert_eq!((report.hidden, report.verdicts.is_empty()), (hidden, hidden));
        assert_eq!(report.completeness.open, u64::from(hidden));
    }
    // Failed for good: complete, and the claim is void.
    let report = lab.audit();
    assert_eq!(report.verdicts[0].word, Some(Word::Void));
    assert_eq!(classes(&report), [(Class::Shortfall, When::BeforeValues)]);
    // Another plan than the registered one hides nothing: it is exploratory.
    let mut other = planned();
    other.params.clear();
    let mut lab = Lab::new(other);
    lab.register(&planned());
    assert!(!lab.audit().hidden);
}

#[test]
fn a_spec_changed_in_mid_run_opens_nothing_that_was_made_under_the_registration() {
    let mut other = planned();
    other.claims[0].alpha = "0.10".to_owned();
    let mut lab = Lab::new(other);
    lab.register(&planned());
    assert!(!lab.audit().hidden, "nothing was made yet");
    let first = lab.member("train", 0);
    lab.succeed(first, &accuracy(0.9));
    let report = lab.audit();
    assert_eq!((report.hidden, report.standing), (true, Standing::Exploratory));
    assert!(report.verdicts.is_empty());
}

#[test]
fn what_follows_a_final_failure_is_final_too() {
    let mut test = stage("test", &["seed"], MeasurementFormat::FlatJson);
    let from = Source::Output {
        stage: "train".to_owned(),
        output: "result".to_owned(),
        at: BTreeMap::new(),
        gather: vec!["seed".to_owned()],
    };
    test.inputs.insert(
        "models".to_owned(),
        Input { from, mount: "inputs/models".to_owned(), scoring: false, licence: None },
    );
    let train = stage("train", &["seed"], MeasurementFormat::FlatJson);
    let plan = plan(vec![seeds(2)], vec![test, train], vec![]);
    let mut lab = Lab::new(plan.clone());
    lab.register(&plan);
    let (first, second) = (lab.member("train", 0), lab.member("train", 1));
    lab.succeed(first, &accuracy(0.9));
    assert!(lab.evidence().hidden());
    lab.attempt(second, Outcome::TimedOut, None);
    let evidence = lab.evidence();
    assert!(evidence.completeness().is_complete());
    assert_eq!(evidence.member(lab.member("test", 0)).unwrap().fate.word(), "blocked");
}

#[test]
fn failed_attempts_beside_a_success_are_counted() {
    let mut lab = Lab::new(planned());
    let member = lab.member("train", 3);
    lab.attempt(member, Outcome::Failed(Failure::Exit(2)), None);
    lab.attempt(member, Outcome::Lost, None);
    run_all(&mut lab);
    let report = lab.audit();
    assert_eq!(classes(&report), [(Class::Incident, When::Unregistered)]);
    let What::FailedAttempts { members, .. } = &report.deviations[0].what else { panic!() };
    // A runner that died chose nothing: the lost attempt does not count.
    assert_eq!(members, &BTreeMap::from([("train[seed=1,wd=0.1]".to_owned(), 1)]));
}

#[test]
fn registrations_on_two_sides_of_a_fork_leave_nothing_confirmatory() {
    let mut lab = Lab::new(planned());
    lab.register(&planned());
    let common = lab.ledger.clone();
    let mut amended = planned();
    amended.params.clear();
    lab.note("amend", serde_json::json!({"plan": planned_digest(&planned())}));
    let left = lab.ledger.split_off(common.len());
    lab.note("amend", serde_json::json!({"plan": planned_digest(&amended)}));
    lab.ledger.extend(left);
    let report = lab.audit();
    assert_eq!(report.standing, Standing::Exploratory);
    assert!(report.deviations.iter().any(|d| d.class == Class::ConcurrentAmendment));
}

fn planned_digest(plan: &Plan) -> String {
    use avow_model::canonical::Record;
    plan.digest().to_string()
}

#[test]
fn a_failure_from_before_the_registration_completes_nothing() {
    let mut lab = Lab::new(planned());
    let last = lab.member("train", 15);
    lab.attempt(last, Outcome::Failed(Failure::Exit(1)), None);
    lab.register(&planned());
    for cell in 0..15 {
        let member = lab.member("train", cell);
        lab.succeed(member, &accuracy(0.9));
    }
    assert!(lab.evidence().hidden());
    lab.attempt(last, Outcome::Failed(Failure::Exit(1)), None);
    assert!(!lab.evidence().hidden());
}
