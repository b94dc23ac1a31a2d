# What people of this field try first. Each target installs the system packages it needs.
PREFIX ?= /usr/local
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)

.DEFAULT_GOAL := help
.PHONY: help packages build demo test models lint bench doc install

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

packages:
	@scripts/install-packages build

build: packages ## everything, optimised
	$(CARGO) build --release --workspace

demo: packages ## a Hartree-Fock calculation of (H2O)3 on all cores: energy, and where the time went
	@$(CARGO) build --release -p scf -p armci-run
	@$(TARGET)/release/scf benches/scf/molecules/h2o-3.xyz
	@printf '\nNext: make test; $(TARGET)/release/scf --help; your own molecule in place of benches/scf/molecules/h2o-3.xyz\n'

test: packages ## all tests, and the models of every lock-free structure
	$(CARGO) test --workspace
	@$(MAKE) --no-print-directory models

models: packages ## the loom models alone
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom $(CARGO) test -p armci-core --lib loom_models

lint: packages ## formatting and clippy, as CI wants them
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

bench: packages ## each figure beside this machine's limit and ARMCI-MPI, in one run
	@scripts/install-packages peers || echo "going on without the peers"
	@$(CARGO) build --release -p benches
	@# A scheduling group of its own keeps builds in other terminals from distorting it, where the system lets us.
	@setsid -w sh -c 'echo -20 2>/dev/null >/proc/self/autogroup; exec $(TARGET)/release/armci-bench'

doc: packages ## the documentation of all crates
	$(CARGO) doc --workspace --no-deps

install: build ## programs, C library and header into PREFIX (/usr/local)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib $(DESTDIR)$(PREFIX)/include
	install -m 755 $(TARGET)/release/armci-run $(TARGET)/release/scf $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(TARGET)/release/libarmci.so $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(TARGET)/release/libarmci.a $(DESTDIR)$(PREFIX)/lib
	install -m 644 ffi/include/armci.h $(DESTDIR)$(PREFIX)/include
