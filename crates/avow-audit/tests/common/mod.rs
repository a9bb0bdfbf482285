//! A small laboratory: plans, a store in memory, a ledger and a journal, built by hand.

#![allow(dead_code, reason = "each test target uses its own part of the laboratory")]

use std::collections::{BTreeMap, HashMap};

use avow_audit::integrity::RunJournal;
use avow_audit::{Evidence, Report, Source, audit};
use avow_model::attempt::{Attempt, AttemptId, Host, Outcome, Produced, Usage};
use avow_model::axis::{Axis, Points};
use avow_model::bind::bind;
use avow_model::canonical::Record;
use avow_model::claim::{
    Bound, Claim, Compare, Correction, Inference, Judge, Method, Missing, Part, Rule, Selected, Selection,
    Side, Statistic, Test, Tier,
};
use avow_model::digest::{Artifact, BlobDigest, LineDigest, RegistrationDigest};
use avow_model::expand::{self, Cell, Member};
use avow_model::journal::{self, Event, Line, Opened};
use avow_model::ledger::{self, Ledger};
use avow_model::plan::{
    Determinism, Keep, MeasurementFile, MeasurementFormat, Output, Plan, Program, Reuse, Stage, Terms,
};
use avow_model::template::Template;
use avow_model::value::Value;
use avow_store::{BlobStore, MemoryBlobs, MemoryIndex, Position, RecordStore, Recorded};
use serde_json::{Map, json};

/// The standard data of `statistics.md`.
pub const X: [f64; 8] = [0.912, 0.905, 0.921, 0.899, 0.917, 0.908, 0.915, 0.910];
/// The second arm of the standard data.
pub const Y: [f64; 8] = [0.901, 0.903, 0.909, 0.897, 0.905, 0.909, 0.902, 0.904];

/// A list axis.
pub fn axis(name: &str, values: &[f64]) -> Axis {
    let value = |x: &f64| if x.fract() == 0.0 { Value::Int(*x as i64) } else { Value::Float(*x) };
    Axis { name: name.to_owned(), points: Points::List(values.iter().map(value).collect()) }
}

/// The seeds 0, 1, ….
pub fn seeds(count: usize) -> Axis {
    axis("seed", &(0..count).map(|i| i as f64).collect::<Vec<f64>>())
}

/// A stage that writes `result.json`, with these axes (sorted).
pub fn stage(name: &str, scope: &[&str], format: MeasurementFormat) -> Stage {
    let output = Output {
        path: "result.json".to_owned(),
        folder: false,
        optional: false,
        keep: Keep::Content,
        holdout: false,
    };
    let file = MeasurementFile {
        output: "result".to_owned(),
        format,
        values: vec![],
        keys: vec![],
        pointers: BTreeMap::new(),
    };
    let references: Vec<String> = scope.iter().map(|axis| format!("${{axes.{axis}}}")).collect();
    let command = format!("python3 {name}.py {}", references.join(" "));
    Stage {
        name: name.to_owned(),
        kind: None,
        program: Program::Shell(Template::parse(&command).unwrap()),
        scope: scope.iter().map(|axis| (*axis).to_owned()).collect(),
        code: None,
        environment: None,
        toolchain: BTreeMap::new(),
        loads: None,
        env: BTreeMap::new(),
        inputs: BTreeMap::new(),
        outputs: BTreeMap::from([("result".to_owned(), output)]),
        measurements: vec![file],
        reuse: Reuse::Always,
        repeats: false,
        determinism: Determinism::Bytes,
        hardware: None,
        image: None,
    }
}

/// A plan of these axes, stages and claims.
pub fn plan(mut axes: Vec<Axis>, mut stages: Vec<Stage>, mut claims: Vec<Claim>) -> Plan {
    axes.sort_by(|a, b| a.name.cmp(&b.name));
    stages.sort_by(|a, b| a.name.cmp(&b.name));
    claims.sort_by(|a, b| a.name.cmp(&b.name));
    let params = BTreeMap::from([("n".to_owned(), Value::Int(100))]);
    Plan {
        experiment: "lab".to_owned(),
        params,
        axes,
        exclude: vec![],
        pilot: vec![],
        seen: vec![],
        registration: BTreeMap::new(),
        stages,
        claims,
    }
}

/// A primary claim.
pub fn claim(name: &str, test: Test) -> Claim {
    Claim {
        name: name.to_owned(),
        says: Some(format!("{name} holds")),
        tier: Tier::Primary,
        family: "primary".to_owned(),
        correct: Correction::Holm,
        alpha: "0.05".to_owned(),
        requires: vec![],
        means: BTreeMap::from([("refuted".to_owned(), "it does not".to_owned())]),
        silent_on: None,
        after: None,
        weight: None,
        gate: None,
        sequential: false,
        test,
    }
}

/// A part that selects `train.accuracy` per seed.
pub fn part(rule: Rule) -> Part {
    Part {
        select: Selection {
            stage: "train".to_owned(),
            of: Selected::Measurement("accuracy".to_owned()),
            filter: BTreeMap::new(),
        },
        compare: None,
        crossed: None,
        reduce: vec![],
        per: vec![],
        replicate: Some("seed".to_owned()),
        clusters: None,
        strata: None,
        by_units: false,
        also: None,
        control: None,
        missing: Missing::Void,
        judge: Judge::Interval,
        rule,
    }
}

/// One part as a test.
pub fn one(part: Part) -> Test {
    Test::One(Box::new(part))
}

/// The contrast `wd: [0.1, 0]`.
pub fn wd() -> Option<Compare> {
    Some(Compare { dimension: "wd".to_owned(), first: Value::Float(0.1), second: Value::Int(0) })
}

/// Settings of an inference.
pub fn by(method: Method) -> Inference {
    Inference {
        method,
        side: Side::Two,
        deterministic: false,
        smallest: None,
        unpaired: false,
        equal_spread: false,
        log: false,
        until: None,
        range: None,
    }
}

/// θ > bound.
pub fn above(bound: f64) -> Bound {
    Bound::Above { bound, refute: bound }
}

/// θ < bound.
pub fn below(bound: f64) -> Bound {
    Bound::Below { bound, refute: bound }
}

/// A mean above or below a bound.
pub fn mean(bound: Bound, method: Method) -> Rule {
    Rule::Threshold { statistic: Statistic::Mean, bound, inference: by(method) }
}

/// A paired difference.
pub fn difference(bound: Bound, method: Method) -> Rule {
    Rule::Difference { bound, inference: by(method) }
}

/// Everything a test audits.
pub struct Lab {
    pub plan: Plan,
    pub blobs: MemoryBlobs,
    pub index: MemoryIndex,
    pub ledger: Vec<u8>,
    pub lines: Vec<String>,
    made: HashMap<Member, BTreeMap<String, Artifact>>,
    count: u64,
}

impl Lab {
    pub fn new(plan: Plan) -> Lab {
        let mut lab = Lab {
            plan,
            blobs: MemoryBlobs::new(),
            index: MemoryIndex::new(),
            ledger: Vec::new(),
            lines: Vec::new(),
            made: HashMap::new(),
            count: 0,
        };
        lab.open_journal();
        lab
    }

    fn open_journal(&mut self) {
        let opened = Opened {
            version: 1,
            run: "r1".to_owned(),
            nonce: "00".repeat(32),
            experiment: "lab".to_owned(),
            plan: self.plan.digest(),
            members: 0,
            confirmatory: false,
            ledger_heads: vec![],
            continues: None,
            spec: "lab.yaml".to_owned(),
            tool: "test".to_owned(),
        };
        self.append(Event::Opened(Box::new(opened)));
    }

    fn append(&mut self, event: Event) {
        let previous = self.lines.last().map(|line| LineDigest::of(line.as_bytes()));
        self.lines.push(Line { previous, at: self.count as i64, event }.to_text());
    }

    /// The journal as bytes.
    pub fn journal_bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect()
    }

    /// The journal as read.
    pub fn journals(&self) -> Vec<RunJournal> {
        vec![RunJournal { run: "r1".to_owned(), journal: journal::read(&self.journal_bytes()) }]
    }

    /// The ledger as read.
    pub fn read_ledger(&self) -> Ledger {
        Ledger::read(&self.ledger)
    }

    /// Appends a ledger line.
    pub fn note(&mut self, kind: &str, fields: serde_json::Value) -> RegistrationDigest {
        let ledger = self.read_ledger();
        let serde_json::Value::Object(mut fields) = fields else { panic!("fields") };
        if ledger.chain().is_none() {
            fields.insert("nonce".to_owned(), json!("11".repeat(32)));
        }
        let line = ledger.line(kind, fields as Map<String, serde_json::Value>).unwrap();
        self.ledger.extend(line.as_bytes());
        self.ledger.push(b'\n');
        ledger::leaf(line.as_bytes())
    }

    /// Registers a plan.
    pub fn register(&mut self, plan: &Plan) -> RegistrationDigest {
        self.blobs.put(&plan.to_bytes()).unwrap();
        let claims = plan.claims.len();
        self.note(
            "register",
            json!({"experiment": "lab", "plan": plan.digest().to_string(), "claims": claims}),
        )
    }

    /// Notes the journal's head in the ledger.
    pub fn note_head(&mut self) {
        let head = LineDigest::of(self.lines.last().unwrap().as_bytes());
        self.note("run-head", json!({"run": "r1", "journal": head.to_string()}));
    }

    /// Carries out every member of a stage for which `result` gives a text.
    pub fn run(&mut self, stage: &str, result: impl Fn(&Cell<'_>) -> Option<String>) {
        let plan = self.plan.clone();
        let index = plan.stage_index(stage).unwrap();
        for member in expand::members(&plan, index) {
            if let Some(text) = result(&expand::cell(&plan, member)) {
                self.succeed(member, &text);
            }
        }
    }

    /// A success that writes a text.
    pub fn succeed(&mut self, member: Member, text: &str) -> Attempt {
        self.attempt(member, Outcome::Succeeded, Some(text))
    }

    /// An attempt, recorded in blobs, journal and index.
    pub fn attempt(&mut self, member: Member, outcome: Outcome, text: Option<&str>) -> Attempt {
        let attempt = self.made_attempt(member, outcome, text);
        self.record(member, &attempt);
        attempt
    }

    /// An attempt that nobody has recorded yet.
    pub fn made_attempt(&mut self, member: Member, outcome: Outcome, text: Option<&str>) -> Attempt {
        self.count += 1;
        let plan = self.plan.clone();
        let bound =
            bind(&plan, member, &|producer, output| self.made.get(&producer)?.get(output).copied()).unwrap();
        let outputs: BTreeMap<String, Produced> = text
            .map(|text| {
                let artifact = Artifact::Blob(self.blobs.put(text.as_bytes()).unwrap());
                let stage = &plan.stages[member.stage as usize];
                let name = stage.outputs.keys().next().unwrap().clone();
                (name, Produced { artifact, size: text.len() as u64 })
            })
            .into_iter()
            .collect();
        let artifacts = outputs.iter().map(|(name, p)| (name.clone(), p.artifact)).collect();
        self.made.entry(member).or_insert(artifacts);
        Attempt {
            id: AttemptId(format!("{:032x}", self.count)),
            action: bound.action.digest(),
            run: "r1".to_owned(),
            outcome,
            outputs,
            stdout: None,
            stderr: None,
            reads: None,
            started: self.count as i64,
            finished: self.count as i64 + 1,
            usage: Usage::default(),
            host: Host { name: "lab".to_owned(), ..Host::default() },
            environment: None,
            encoding: 1,
            terms: Terms::default(),
            ledger_heads: self.read_ledger().heads(),
            number: 1,
            continues: Vec::new(),
            verification: false,
        }
    }

    /// Records an attempt in journal and index.
    pub fn record(&mut self, member: Member, attempt: &Attempt) {
        let label = expand::label(&self.plan, member);
        self.append(Event::Finished { member: label.clone(), attempt: Box::new(attempt.clone()) });
        let position = Position { opened: 0, run: "r1".to_owned(), line: self.lines.len() as u64 };
        let recorded =
            Recorded { position, experiment: "lab".to_owned(), member: label, attempt: attempt.clone() };
        self.index.insert(&recorded).unwrap();
    }

    pub fn source(&self) -> Source<'_> {
        Source::new(&self.blobs, &self.index)
    }

    pub fn evidence(&self) -> Evidence<'_> {
        Evidence::gather(&self.plan, self.source(), &self.read_ledger()).unwrap()
    }

    /// The whole audit.
    pub fn audit(&self) -> Report {
        audit(&self.plan, self.source(), &self.announced(), Some(&self.journals())).unwrap()
    }

    /// The ledger with the line in which the run announced itself, as every run does before it carries anything out.
    pub fn announced(&self) -> Ledger {
        let (ledger, journals) = (self.read_ledger(), self.journals());
        let lines = journals[0].journal.before_attempts().unwrap_or_default();
        let known = ledger.announced();
        let Some(line) = lines.first().filter(|line| !known.contains(line)) else { return ledger };
        let mut fields = Map::new();
        fields.insert("run".to_owned(), json!("r1"));
        fields.insert("journal".to_owned(), json!(line.to_string()));
        if ledger.chain().is_none() {
            fields.insert("nonce".to_owned(), json!("11".repeat(32)));
        }
        // Nothing is appended to a ledger that does not verify.
        let Ok(line) = ledger.line("run-opened", fields) else { return ledger };
        let (sound, torn) = self.ledger.split_at(ledger.intact());
        Ledger::read(&[sound, line.as_bytes(), b"\n", torn].concat())
    }

    /// The member of a stage at a cell number.
    pub fn member(&self, stage: &str, cell: u64) -> Member {
        Member { stage: self.plan.stage_index(stage).unwrap() as u32, cell }
    }

    /// The blob of a member's result.
    pub fn result(&self, member: Member) -> BlobDigest {
        self.made[&member]["result"].blob()
    }
}

/// A plan with `train[seed,wd]` and one run of it on the standard data; `claims` select `train.accuracy`.
pub fn standard(claims: Vec<Claim>) -> Lab {
    let axes = vec![seeds(8), axis("wd", &[0.0, 0.1])];
    let stages = vec![stage("train", &["seed", "wd"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(axes, stages, claims));
    lab.run("train", |cell| Some(accuracy(standard_value(cell))));
    lab
}

/// X for `wd` 0.1, Y for `wd` 0.
pub fn standard_value(cell: &Cell<'_>) -> f64 {
    let seed = cell.index("seed").unwrap() as usize;
    if cell.index("wd").unwrap() == 1 { X[seed] } else { Y[seed] }
}

/// A flat result.
pub fn accuracy(value: f64) -> String {
    format!("{{\"accuracy\": {value}}}")
}

/// A plan with `train[level,seed]` whose accuracy is `value(level index, seed index)`.
pub fn levels(
    values: &[f64],
    seed_count: usize,
    claims: Vec<Claim>,
    value: impl Fn(usize, usize) -> f64,
) -> Lab {
    let axes = vec![axis("level", values), seeds(seed_count)];
    let stages = vec![stage("train", &["level", "seed"], MeasurementFormat::FlatJson)];
    let mut lab = Lab::new(plan(axes, stages, claims));
    lab.run("train", |cell| {
        Some(accuracy(value(cell.index("level").unwrap() as usize, cell.index("seed").unwrap() as usize)))
    });
    lab
}
