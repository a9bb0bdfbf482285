//! How much may run at once.

/// What a member asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// CPU slots; at least one.
    pub cpus: u32,
    /// Bytes of memory it reserves; zero where nothing is declared.
    pub memory: u64,
}

/// A request that the whole machine cannot meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("asks for {asked} {unit}, and this run has {available}")]
pub struct TooLarge {
    /// What was asked for.
    pub asked: u64,
    /// What there is.
    pub available: u64,
    /// `CPU slots` or `bytes of memory`.
    pub unit: &'static str,
}

/// The slots of a run and how many are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    cpus: u32,
    memory: u64,
    free_cpus: u32,
    free_memory: u64,
}

impl Slots {
    /// So many CPU slots, so many bytes of memory. Without slots nothing starts: a forecast.
    pub fn new(cpus: u32, memory: u64) -> Slots {
        Slots { cpus, memory, free_cpus: cpus, free_memory: memory }
    }

    /// Whether a request could ever be met.
    pub fn admits(&self, request: Request) -> Result<(), TooLarge> {
        if request.cpus > self.cpus {
            let (asked, available) = (u64::from(request.cpus), u64::from(self.cpus));
            return Err(TooLarge { asked, available, unit: "CPU slots" });
        }
        if request.memory > self.memory {
            let (asked, available) = (request.memory, self.memory);
            return Err(TooLarge { asked, available, unit: "bytes of memory" });
        }
        Ok(())
    }

    /// Takes what is asked for, if it is free.
    pub fn take(&mut self, request: Request) -> bool {
        let fits = request.cpus <= self.free_cpus && request.memory <= self.free_memory;
        if fits {
            self.free_cpus -= request.cpus;
            self.free_memory -= request.memory;
        }
        fits
    }

    /// Gives back what was taken.
    pub fn give_back(&mut self, request: Request) {
        self.free_cpus += request.cpus;
        self.free_memory += request.memory;
        debug_assert!(self.free_cpus <= self.cpus && self.free_memory <= self.memory);
    }

    /// Whether no CPU slot is free.
    pub fn exhausted(&self) -> bool {
        self.free_cpus == 0
    }

    /// CPU slots in use.
    pub fn busy(&self) -> u32 {
        self.cpus - self.free_cpus
    }
}
