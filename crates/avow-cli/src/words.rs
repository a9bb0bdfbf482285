//! Sentences and spellings that several commands share.

pub mod denominators;
pub mod deviation;
pub mod difference;
pub mod finding;
pub mod foreign;
pub mod forms;
pub mod manuscript;
pub mod reason;
pub mod steps;
pub mod verdict;
pub mod witness;

use std::time::Duration;

use avow_model::plan::Plan;
use avow_store::shared_index::Holder;

/// What an attempt went on from, to be put behind it; nothing where it began from nothing.
pub fn continued<T: ToString>(attempts: &[T]) -> String {
    let shown: Vec<String> = attempts.iter().map(|id| id.to_string().chars().take(8).collect()).collect();
    match shown.as_slice() {
        [] => String::new(),
        [one] => format!(", going on from the checkpoint of attempt {one}"),
        many => format!(", going on from the checkpoint of attempts {}", many.join(", ")),
    }
}

/// The stage of a member's label: `train` of `train[seed=3]`.
pub fn stage_of(label: &str) -> &str {
    label.split('[').next().unwrap_or(label)
}

/// `the stages are a, b, c`, for a hint; of very many only the first.
pub fn stages(plan: &Plan) -> String {
    const SHOWN: usize = 20;
    let names: Vec<&str> = plan.stages.iter().take(SHOWN).map(|s| s.name.as_str()).collect();
    let more = match plan.stages.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("the stages are {}{more}", names.join(", "))
}

/// A duration in the two largest units that matter.
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Bytes in binary units.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", UNITS[unit]) }
}

/// A number with four significant digits, for people; the exact value is in `--json`.
pub fn number(x: f64) -> String {
    if !x.is_finite() {
        return match x {
            _ if x.is_nan() => "NaN".to_owned(),
            _ if x > 0.0 => "inf".to_owned(),
            _ => "-inf".to_owned(),
        };
    }
    let size = x.abs();
    if x == 0.0 {
        "0".to_owned()
    } else if (1e-4..1e6).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 8) as usize;
        let text = format!("{x:.digits$}");
        let trimmed =
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        trimmed.to_owned()
    } else {
        format!("{x:.3e}")
    }
}

/// `1 member`, `2 members`, `2 processes`.
pub fn count(n: u64, word: &str) -> String {
    match n {
        1 => format!("1 {word}"),
        n if word.ends_with('s') => format!("{n} {word}es"),
        n => format!("{n} {word}s"),
    }
}

/// Text with control characters spelled out, so that no name in a file can steer a terminal.
pub fn plain(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Rows as aligned columns; the last column is not padded.
pub fn columns(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
    let mut widths: Vec<usize> = Vec::new();
    for row in &rows {
        for (i, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(i) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let gap = width - cell.chars().count() + 2;
            line.push_str(cell);
            line.push_str(&" ".repeat(gap));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// A moment in UTC, to the second.
pub fn moment(at: i64) -> String {
    match jiff::Timestamp::from_millisecond(at) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{at} ms"),
    }
}

/// What to do about a failure of the machine, from what the system said.
pub fn mending(said: &str) -> &'static str {
    let is = |code: i32| said.contains(&std::io::Error::from_raw_os_error(code).to_string());
    if is(28) || is(122) || said.contains("is full") {
        "free some disk space and give the same command again; nothing recorded is lost"
    } else if is(24) || is(23) {
        "raise the limit of open files (`ulimit -n 4096`), or run fewer stages at once with `-j`"
    } else {
        "`avow doctor` says what this machine lacks; give the same command again once it is mended"
    }
}

/// What a member waits for that another run makes.
pub fn awaited(wait: &avow_store::presence::Wait) -> String {
    match &wait.run {
        Some(run) => format!("waits for run {run}, which makes exactly the same"),
        None => "waits for another run, which makes exactly the same".to_owned(),
    }
}

/// What is said of the process that has the index open and does not answer.
pub fn silent(holder: &Holder, silent: Option<Duration>) -> String {
    let who = match (&holder.run, holder.pid) {
        (Some(run), Some(pid)) => format!("run {run} (process {pid})"),
        (None, Some(pid)) => format!("process {pid}"),
        _ => "another command".to_owned(),
    };
    match (holder.pid, silent) {
        (Some(pid), _) if holder.stopped => {
            format!("waiting: {who} holds the index and is stopped; `kill -CONT {pid}` lets it go on")
        }
        (_, Some(silent)) => {
            let silent = seconds(silent.as_secs_f64());
            format!("waiting: {who} holds the index and has not answered for {silent}; it may be busy")
        }
        _ => format!("waiting: {who} holds the index"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits_and_never_lie_about_size() {
        let spelled: Vec<String> =
            [0.0245, 1234.567, 0.99996, 1e-7, -0.5, 12345678.0, f64::INFINITY].map(number).to_vec();
        assert_eq!(spelled, ["0.0245", "1235", "1", "1.000e-7", "-0.5", "1.235e7", "inf"]);
    }

    #[test]
    fn durations_and_sizes_are_short() {
        assert_eq!(
            [0.02, 3.21, 42.0, 200.0, 7300.0].map(seconds),
            ["20 ms", "3.2 s", "42 s", "3 min 20 s", "2 h 1 min"]
        );
        assert_eq!([5, 2048, 3 << 30].map(bytes), ["5 B", "2.0 KiB", "3.0 GiB"]);
    }
}
