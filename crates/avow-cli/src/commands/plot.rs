//! `avow plot`: the plots of a report as files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use avow_report::Plot;
use serde_json::json;

use crate::args::{self, PlotForm};
use crate::exit::Exit;
use crate::output::{Failure, Output};

/// Draws plots.
pub fn plot(args: &args::Plot, output: &Output) -> Result<Exit, Failure> {
    let form = form(args)?;
    let shown = args.what.as_deref().unwrap_or("the whole experiment");
    super::page::with(args.spec.as_deref(), args.peek, ("plot", shown), output, |page| {
        let plots = page.plots(args.what.as_deref());
        if plots.is_empty() {
            return Err(nothing(args, page.plan));
        }
        let several = plots.len() > 1;
        let (mut told, mut names) = (Vec::new(), BTreeMap::new());
        for (of, figure) in &plots {
            let path = path(args, form, of, several, &mut names);
            super::page::write(&path, &drawn(&figure.plot, form, args.dpi)?)?;
            if !args.json {
                output.data(format!("wrote `{}`: {}", path.display(), figure.caption))?;
            }
            told.push(json!({"path": path, "of": of, "caption": figure.caption}));
        }
        if args.json {
            output.json(&told)?;
        }
        Ok(super::verdict::damage(page.report, output))
    })
}

fn form(args: &args::Plot) -> Result<PlotForm, Failure> {
    let named = args.output.as_deref().and_then(Path::extension).map(|e| e.to_ascii_lowercase());
    let by_name = match named.as_ref().and_then(|extension| extension.to_str()) {
        Some("svg") => Some(PlotForm::Svg),
        Some("png") => Some(PlotForm::Png),
        Some("pdf") => Some(PlotForm::Pdf),
        Some(other) if args.format.is_none() && !is_folder(args) => {
            return Err(Failure::new(Exit::Usage, format!("no plot is written as `.{other}`"))
                .hint("the name ends in .svg, .png or .pdf, or give `--format`"));
        }
        _ => None,
    };
    Ok(args.format.or(by_name).unwrap_or(PlotForm::Svg))
}

fn is_folder(args: &args::Plot) -> bool {
    args.output.as_deref().is_some_and(Path::is_dir)
}

fn drawn(plot: &Plot, form: PlotForm, dpi: u16) -> Result<Vec<u8>, Failure> {
    let drawn = match form {
        PlotForm::Svg => plot.svg().map(String::into_bytes),
        PlotForm::Png => plot.png(dpi),
        PlotForm::Pdf => plot.pdf(),
    };
    drawn.map_err(|error| Failure::new(Exit::Internal, "a plot cannot be drawn").because(error))
}

/// Where a plot goes: the path that was given, numbered from the second on, or a name of its own in a folder.
fn path(
    args: &args::Plot,
    form: PlotForm,
    of: &str,
    several: bool,
    names: &mut BTreeMap<PathBuf, usize>,
) -> PathBuf {
    let ending = match form {
        PlotForm::Svg => "svg",
        PlotForm::Png => "png",
        PlotForm::Pdf => "pdf",
    };
    let (folder, stem) = match &args.output {
        Some(file) if !file.is_dir() => {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (file.parent().map(Path::to_owned).unwrap_or_default(), stem)
        }
        Some(folder) => (folder.clone(), of.to_owned()),
        None => (PathBuf::new(), of.to_owned()),
    };
    let seen = names.entry(folder.join(&stem)).or_insert(0);
    *seen += 1;
    let number = if several && *seen > 1 { format!("-{seen}") } else { String::new() };
    match (&args.output, number.is_empty()) {
        // The name as it was written, whatever it ends in.
        (Some(file), true) if !file.is_dir() => file.clone(),
        _ => folder.join(format!("{stem}{number}.{ending}")),
    }
}

fn nothing(args: &args::Plot, plan: &avow_model::plan::Plan) -> Failure {
    match &args.what {
        None => Failure::new(Exit::Usage, "there is nothing to draw: nothing was measured yet")
            .hint("`avow run` carries the experiment out"),
        Some(what) => {
            let claims: Vec<String> = plan.claims.iter().map(|claim| format!("`{}`", claim.name)).collect();
            let claims = if claims.is_empty() { "there are none".to_owned() } else { claims.join(", ") };
            Failure::new(Exit::Usage, format!("nothing that could be drawn is called `{what}`")).hint(
                format!("name a claim ({claims}) or a measurement; `avow table` shows what was measured"),
            )
        }
    }
}
