//! `mlp/train`: a bias-free ReLU network, trained by plain stochastic gradient descent.
//!
//! Initial weights and the order of the rows come from two seeds, so that either can vary alone. The last
//! incomplete batch of an epoch is dropped. A run whose loss stops being a number fails: its weights are not
//! a result.

use std::collections::BTreeMap;

use avow_model::op::{Kind, OpSignature, ParameterType};
use avow_model::value::Value;
use candle_core::{Device, Tensor as Candle};

use crate::call::Invocation;
use crate::classified::Classified;
use crate::declare::{defaulted, input, int, ints, measurement, optional_output, output, required};
use crate::error::OpError;
use crate::network::{Descent, Network, Weights, failed, on_one_thread};
use crate::random::Source;
use crate::records::Records;
use crate::tensors::{self, Numbers, Tensor};

/// What the operation promises.
pub(crate) fn signature(identity: &'static str) -> OpSignature {
    let number = |high| ParameterType::Number { low: 0.0, high };
    OpSignature {
        name: "mlp/train",
        kind: Some(Kind::Train),
        about: "trains a bias-free ReLU network with softmax cross-entropy and plain SGD, in float32",
        inputs: vec![input("train", "`x`: rows x features; `y`: rows, classes from 0")],
        outputs: vec![
            output(
                "model",
                "model.safetensors",
                "`epoch.E.wL`: outputs x inputs of layer L (from 1), float32",
            ),
            optional_output("history", "history.jsonl", "`train-loss` of every epoch as JSON Lines"),
        ],
        parameters: vec![
            defaulted(
                "widths",
                ParameterType::Ints { low: 1, high: 100_000 },
                ints(&[64, 64, 64, 64]),
                "the widths of the hidden layers",
            ),
            defaulted("epochs", int(0, 1_000_000), Value::Int(300), "how often the training rows are seen"),
            defaulted(
                "checkpoints",
                ParameterType::Ints { low: 0, high: 1_000_000 },
                ints(&[0, 20, 300]),
                "the epochs after which the weights are kept; 0 is before training",
            ),
            defaulted("rate", number(1e6), Value::Float(0.1), "the learning rate"),
            defaulted("batch", int(1, 1_000_000), Value::Int(50), "rows per step"),
            defaulted("decay", number(1e6), Value::Float(0.0), "the weight decay, added to the gradient"),
            required("init_seed", ParameterType::Seed, "the seed of the initial weights, N(0, 2/fan-in)"),
            required("order_seed", ParameterType::Seed, "the seed of the order of the rows in each epoch"),
        ],
        measurements: vec![measurement(
            "train-loss",
            &["epoch"],
            Some((0.0, f64::INFINITY)),
            "the mean loss over the steps of an epoch, at each checkpoint after 0",
        )],
        identity,
    }
}

/// Trains, and writes the weights of every checkpoint.
pub(crate) fn run(call: &Invocation<'_>) -> Result<(), OpError> {
    let data = Classified::read(call.input("train"))?;
    let (epochs, batch) = (call.count("epochs"), call.count("batch"));
    let checkpoints = call.counts("checkpoints");
    if let Some(late) = checkpoints.iter().find(|c| **c > epochs) {
        return Err(OpError::parameter("checkpoints", format!("{late} lies after the last epoch, {epochs}")));
    }
    if batch > data.y.len() {
        let problem = format!("{batch} rows a step are more than the {} training rows", data.y.len());
        return Err(OpError::parameter("batch", problem));
    }
    let (kept, losses) = on_one_thread(|| train(call, &data, &checkpoints))?;
    tensors::write(call.output("model"), &kept)?;
    let line = |records: &mut Records, epoch: usize, loss: f64| {
        records.add("train-loss", loss, &[("epoch", Value::Int(epoch as i64))]);
    };
    let (mut at_checkpoints, mut history) = (Records::default(), Records::default());
    for (index, &loss) in losses.iter().enumerate() {
        line(&mut history, index + 1, loss);
        if checkpoints.contains(&(index + 1)) {
            line(&mut at_checkpoints, index + 1, loss);
        }
    }
    if let Some(file) = call.wanted("history") {
        history.write(file)?;
    }
    at_checkpoints.write(&call.measurements())
}

type Kept = BTreeMap<String, Tensor>;

/// The weights at the checkpoints, and the mean loss of every epoch.
fn train(
    call: &Invocation<'_>,
    data: &Classified,
    checkpoints: &[usize],
) -> Result<(Kept, Vec<f64>), OpError> {
    let sizes: Vec<usize> =
        [data.x.columns()].into_iter().chain(call.counts("widths")).chain([data.classes()]).collect();
    let network = Network::initialised(&sizes, &Source::new("mlp/train init", call.seed("init_seed")))?;
    let order = Source::new("mlp/train order", call.seed("order_seed"));
    let descent = Descent { rate: call.number("rate") as f32, decay: call.number("decay") as f32 };
    let (mut kept, mut losses) = (Kept::new(), Vec::new());
    for epoch in 0..=call.count("epochs") {
        if epoch > 0 {
            let order = order.draw(epoch as u64).permutation(data.y.len());
            let loss = one_epoch(&network, data, &order, call.count("batch"), descent)?;
            if !loss.is_finite() {
                let problem = format!("training diverged: the loss is {loss} in epoch {epoch}; lower `rate`");
                return Err(OpError::Numerical { problem });
            }
            losses.push(loss);
        }
        if checkpoints.contains(&epoch) {
            keep(&mut kept, epoch, &network)?;
        }
    }
    Ok((kept, losses))
}

/// The mean loss over the steps of one pass through the rows.
fn one_epoch(
    network: &Network,
    data: &Classified,
    order: &[usize],
    batch: usize,
    descent: Descent,
) -> Result<f64, OpError> {
    let mut total = 0.0;
    let steps = order.chunks_exact(batch);
    let count = steps.len();
    for rows in steps {
        let values: Vec<f32> = rows.iter().flat_map(|&i| data.x.row(i)).map(|&v| v as f32).collect();
        let x = Candle::from_vec(values, (batch, data.x.columns()), &Device::Cpu)
            .map_err(failed("gathering a batch"))?;
        let labels: Vec<usize> = rows.iter().map(|&i| data.y[i]).collect();
        total += network.step(&x, &labels, descent)?;
    }
    Ok(total / count as f64)
}

fn keep(kept: &mut Kept, epoch: usize, network: &Network) -> Result<(), OpError> {
    for (layer, Weights { shape, values }) in network.snapshot()?.into_iter().enumerate() {
        let tensor = Tensor { shape, numbers: Numbers::F32(values) };
        kept.insert(format!("epoch.{epoch}.w{}", layer + 1), tensor);
    }
    Ok(())
}
