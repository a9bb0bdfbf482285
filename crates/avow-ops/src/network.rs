//! A bias-free ReLU network in float32 on candle, trained by plain stochastic gradient descent.
//!
//! Layer l computes h_b = W h_a with W of shape outputs × inputs; all layers but the last are followed by a
//! ReLU. The backward pass is written by hand: the library's automatic differentiation would allocate more
//! than it computes at these sizes. Everything runs on one thread, whatever the environment says. There is
//! deliberately no momentum, no schedule and no bias: the experiments that use this network are about its
//! weights, and h_b = W h_a must hold exactly.

use candle_core::{CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Tensor};

use crate::error::OpError;
use crate::random::Source;
use crate::softmax::loss_and_gradient;

/// The weights of one network.
#[derive(Debug)]
pub(crate) struct Network {
    weights: Vec<Tensor>,
}

/// A copy of one layer's weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weights {
    /// Outputs and inputs.
    pub(crate) shape: Vec<usize>,
    /// The values, row after row.
    pub(crate) values: Vec<f32>,
}

/// The step of gradient descent W ← W − rate·(∂L/∂W + decay·W), L the mean loss of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descent {
    /// The learning rate.
    pub(crate) rate: f32,
    /// The weight decay λ.
    pub(crate) decay: f32,
}

impl Network {
    /// A network with weights N(0, 2/fan-in); `sizes` are the widths from the inputs to the classes.
    pub(crate) fn initialised(sizes: &[usize], source: &Source) -> Result<Network, OpError> {
        let weights = sizes
            .windows(2)
            .enumerate()
            .map(|(layer, pair)| {
                let (inputs, outputs) = (pair[0], pair[1]);
                let scale = (2.0 / inputs as f64).sqrt();
                let normals = source.draw(layer as u64).normals(inputs * outputs);
                let values = normals.iter().map(|z| (scale * z) as f32).collect();
                Tensor::from_vec::<_, f32>(values, (outputs, inputs), &Device::Cpu)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(failed("initialising the weights"))?;
        Ok(Network { weights })
    }

    /// One step on one batch (rows × inputs); gives the mean loss before the step.
    pub(crate) fn step(&self, x: &Tensor, labels: &[usize], descent: Descent) -> Result<f64, OpError> {
        self.try_step(x, labels, descent).map_err(failed("taking a training step"))
    }

    fn try_step(&self, x: &Tensor, labels: &[usize], descent: Descent) -> candle_core::Result<f64> {
        let mut activations = vec![x.clone()];
        let last = self.weights.len() - 1;
        let mut logits = None;
        for (layer, weights) in self.weights.iter().enumerate() {
            let h_b = activations[layer].matmul(&weights.t()?)?;
            if layer == last {
                logits = Some(h_b);
            } else {
                h_b.inplace_op1(&Relu)?;
                activations.push(h_b);
            }
        }
        let (loss, mut gradient) = mean_loss(&logits.expect("a network has a layer"), labels)?;
        for (layer, weights) in self.weights.iter().enumerate().rev() {
            let by_weights = gradient.t()?.matmul(&activations[layer])?;
            if layer > 0 {
                gradient = gradient.matmul(weights)?;
                gradient.inplace_op2(&activations[layer], &ReluGate)?;
            }
            weights.inplace_op2(&by_weights, &descent)?;
        }
        Ok(loss)
    }

    /// The weights of every layer as they stand.
    pub(crate) fn snapshot(&self) -> Result<Vec<Weights>, OpError> {
        self.weights
            .iter()
            .map(|w| Ok(Weights { shape: w.dims().to_vec(), values: w.flatten_all()?.to_vec1::<f32>()? }))
            .collect::<candle_core::Result<_>>()
            .map_err(failed("copying the weights"))
    }
}

/// Runs `work` on a pool of one thread: the tensor library would otherwise size its work by the environment.
pub(crate) fn on_one_thread<T: Send>(work: impl FnOnce() -> Result<T, OpError> + Send) -> Result<T, OpError> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(|e| OpError::Tensor { doing: "starting its thread", source: Box::new(e) })?;
    pool.install(work)
}

/// Wraps a complaint of the tensor library.
pub(crate) fn failed(doing: &'static str) -> impl Fn(candle_core::Error) -> OpError {
    move |e| OpError::Tensor { doing, source: Box::new(e) }
}

/// The mean loss of a batch and its gradient by the logits.
fn mean_loss(logits: &Tensor, labels: &[usize]) -> candle_core::Result<(f64, Tensor)> {
    let (rows, classes) = logits.dims2()?;
    let values = logits.flatten_all()?.to_vec1::<f32>()?;
    let mut gradient = Vec::with_capacity(values.len());
    let mut total = 0.0;
    for (row, &label) in values.chunks_exact(classes).zip(labels) {
        let mut wide: Vec<f64> = row.iter().map(|&z| f64::from(z)).collect();
        total += loss_and_gradient(&mut wide, label);
        gradient.extend(wide.iter().map(|g| (g / rows as f64) as f32));
    }
    Ok((total / rows as f64, Tensor::from_vec(gradient, (rows, classes), &Device::Cpu)?))
}

/// The ReLU in place. Unlike `max(z, 0)` it keeps NaN, so a network that diverged shows it.
struct Relu;

impl InplaceOp1 for Relu {
    fn name(&self) -> &'static str {
        "relu"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        for z in written(storage, layout)? {
            *z = if *z <= 0.0 { 0.0 } else { *z };
        }
        Ok(())
    }
}

/// Lets a gradient pass where the ReLU's output was above zero.
struct ReluGate;

impl InplaceOp2 for ReluGate {
    fn name(&self) -> &'static str {
        "relu-gate"
    }

    fn cpu_fwd(
        &self,
        gradient: &mut CpuStorage,
        gradient_layout: &Layout,
        h: &CpuStorage,
        h_layout: &Layout,
    ) -> candle_core::Result<()> {
        let gradient = written(gradient, gradient_layout)?;
        for (g, &h) in gradient.iter_mut().zip(read(h, h_layout)?) {
            *g = if h == 0.0 { 0.0 } else { *g };
        }
        Ok(())
    }
}

impl InplaceOp2 for Descent {
    fn name(&self) -> &'static str {
        "descent"
    }

    fn cpu_fwd(
        &self,
        weights: &mut CpuStorage,
        weights_layout: &Layout,
        gradient: &CpuStorage,
        gradient_layout: &Layout,
    ) -> candle_core::Result<()> {
        let weights = written(weights, weights_layout)?;
        for (w, &g) in weights.iter_mut().zip(read(gradient, gradient_layout)?) {
            *w -= self.rate * (g + self.decay * *w);
        }
        Ok(())
    }
}

fn range(layout: &Layout) -> candle_core::Result<std::ops::Range<usize>> {
    let (from, to) =
        layout.contiguous_offsets().ok_or_else(|| candle_core::Error::Msg("a strided operand".to_owned()))?;
    Ok(from..to)
}

fn written<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> candle_core::Result<&'a mut [f32]> {
    match storage {
        CpuStorage::F32(values) => Ok(&mut values[range(layout)?]),
        _ => Err(candle_core::Error::Msg("an operand that is not float32".to_owned())),
    }
}

fn read<'a>(storage: &'a CpuStorage, layout: &Layout) -> candle_core::Result<&'a [f32]> {
    Ok(&storage.as_slice::<f32>()?[range(layout)?])
}
