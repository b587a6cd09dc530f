# SPDX-License-Identifier: ISC
# The one Makefile; "make help" lists the targets. A variant (sanitizers, clang, fuzzing) is this file
# called again with another BUILD directory and other flags.

PREFIX ?= /usr/local
BUILD ?= build
JOBS ?= 2
PORT ?= 2222
FUZZ_SECONDS ?= 30
INSTALL ?= install
CFLAGS ?= -O2 -g
HARDENING ?= -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong
HARDENING_LINK ?= -pie -Wl,-z,relro,-z,now
WARNINGS ?= -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wcast-qual -Wwrite-strings -Wformat=2 -Wvla -Wundef -Werror

# LIBSSH_LEGACY_0_4 keeps names of libssh of before 0.4 (buffer_free, channel_...) out of our way.
# Debian keeps libpq's headers in a directory of their own; elsewhere this one is not there.
PQ_INCLUDE ?= /usr/include/postgresql
STANDARD := -std=c11 -D_GNU_SOURCE -DLIBSSH_LEGACY_0_4 -I. -isystem $(PQ_INCLUDE)
COMPILE = $(CC) $(STANDARD) -fPIE -ffunction-sections -fdata-sections $(WARNINGS) $(HARDENING) $(CPPFLAGS) $(CFLAGS)
LINK = $(CC) $(CFLAGS) $(HARDENING_LINK) -Wl,--as-needed -Wl,--gc-sections $(LDFLAGS)

# What is made of what. A file that does not exist is left out, and so is a program without its main file.
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard $(1)))
in_gateway = $(call objects,$(addprefix gateway/,$(1)))
program = $(if $(wildcard $(2)),$(BUILD)/$(1))
library = $(1:%=$(BUILD)/lib%.a)

SCRIPTS := $(wildcard core/scripts/*.sh)
CORE := $(call objects,core/base/*.c core/*.c) $(if $(SCRIPTS),$(BUILD)/obj/scripts.o)
INIT := $(call objects,drivers/local_init*.c)
RWSD := $(call in_gateway,rwsd.c listener*.c auth*.c session*.c channel*.c sftp*.c scp*.c launch*.c)
WORKER := $(call in_gateway,worker*.c rpc*.c operation_table.c)
RECORDS := $(call in_gateway,records*.c)
RWS := $(call in_gateway,rws.c cli*.c operation_table.c rpc_json.c)
PROGRAMS := $(call program,rwsd,gateway/rwsd.c) $(call program,rwsd-worker,gateway/worker.c) \
	$(call program,rwsd-records,gateway/records.c) $(call program,rws,gateway/rws.c) $(call program,rwsd-init,drivers/local_init.c)
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
CONTRACT := $(call program,contract,tests/contract/contract.c)

WORKER_LIBS = -lcurl -ljson-c -larchive -lcrypto -lseccomp
RECORDS_LIBS = -lsqlite3 -lpq -lseccomp -lcrypto
TEST_LIBS = -lssh $(WORKER_LIBS) $(RECORDS_LIBS)

.PHONY: all unit fuzzers deps deps-test run check test e2e asan fuzz stress bench bench-profile lint \
	lint-flags format install clean help variant-asan variant-clang variant-fuzz
.DELETE_ON_ERROR:
.SECONDARY:

all: $(PROGRAMS) $(call library,core conf keys drivers) ## build the programs

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE) -MMD -MP -c -o $@ $<

# The scripts that run in a sandbox are files here and byte arrays in the program.
$(BUILD)/scripts.c: core/embed.sh $(SCRIPTS)
	@mkdir -p $(@D)
	sh core/embed.sh $(SCRIPTS) >$@
$(BUILD)/obj/scripts.o: $(BUILD)/scripts.c
	@mkdir -p $(@D)
	$(COMPILE) -MMD -MP -c -o $@ $<

# Made anew each time: an archive that is only added to keeps objects of files that are gone.
$(BUILD)/libcore.a: $(CORE)
$(BUILD)/libconf.a: $(call objects,conf/*.c)
$(BUILD)/libkeys.a: $(call objects,keys/*.c)
$(BUILD)/libdrivers.a: $(filter-out $(INIT),$(call objects,drivers/*.c))
$(BUILD)/libgateway.a: $(filter-out %/rwsd.o %/worker.o %/records.o %/rws.o,$(RWSD) $(WORKER) $(RECORDS) $(RWS))
$(BUILD)/lib%.a:
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/rwsd: $(RWSD) $(call objects,drivers/kinds.c drivers/check.c drivers/*_kind.c) $(SANITIZER) $(call library,conf keys core)
	$(LINK) -o $@ $^ -lssh -lcrypto -lseccomp
$(BUILD)/rwsd-worker: $(WORKER) $(SANITIZER) $(call library,conf drivers core)
	$(LINK) -o $@ $^ $(WORKER_LIBS)
$(BUILD)/rwsd-records: $(RECORDS) $(SANITIZER) $(call library,core)
	$(LINK) -o $@ $^ $(RECORDS_LIBS)
$(BUILD)/rws: $(RWS) $(call library,conf core)
	$(LINK) -o $@ $^ -ljson-c -lcrypto

# One of these runs in each local sandbox, which sees this machine's C library: linked to that, it takes
# 144 KiB of memory of its own; linked statically, 908 KiB.
$(BUILD)/rwsd-init: $(INIT) $(call objects,drivers/local_protocol.c drivers/local_scan.c) $(SANITIZER) $(call library,core)
	$(LINK) -s -o $@ $^

# The worker carries the init within itself, and so needs nothing beside it.
$(BUILD)/obj/drivers/local_program.o: CPPFLAGS += -DLOCAL_INIT_FILE='"$(BUILD)/rwsd-init"'
$(BUILD)/obj/drivers/local_program.o: $(BUILD)/rwsd-init

# What test programs share lies beside them, in files that are not called test_*.
$(BUILD)/libshared.a: $(call objects,$(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))
TESTED := $(call library,shared gateway conf keys drivers core)
unit: $(UNIT) $(CONTRACT)
$(BUILD)/unit/%: $(BUILD)/obj/tests/unit/%.o $(TESTED)
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(TEST_LIBS) -lcmocka
$(BUILD)/contract: $(call objects,tests/contract/*.c) $(TESTED)
	$(LINK) -o $@ $^ $(TEST_LIBS) -lcmocka
fuzzers: $(FUZZ)
$(FUZZ): $(BUILD)/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/recode.o $(TESTED)
	$(LINK) -fsanitize=fuzzer -o $@ $^ $(TEST_LIBS)

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

SANITIZE = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
VARIANT = $(MAKE) --no-print-directory HARDENING= HARDENING_LINK=
variant-asan:
	$(VARIANT) BUILD=build/asan CFLAGS="$(SANITIZE)" SANITIZER=build/asan/obj/tests/sanitizer.o all unit
variant-clang:
	$(MAKE) --no-print-directory BUILD=build/clang CC=clang all unit
variant-fuzz:
	$(VARIANT) BUILD=build/fuzz CC=clang CFLAGS="$(SANITIZE) -fsanitize=fuzzer-no-link" fuzzers

deps: ## install the packages that building needs, when some are missing
	@sh tests/deps.sh build
deps-test:
	@sh tests/deps.sh build test

run: deps ## start a gateway for yourself on 127.0.0.1:PORT (2222)
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@sh gateway/run.sh $(BUILD) $(PORT)

# Each of these ends in the line "N passed, N failed".
# The sanitizer suite has a target of its own until it has been green with every driver on a quiet machine.
check: deps-test ## install what the tests need and run all of them
	@LINT=quick tests/run lint build unit fuzz fakes e2e
test: ## unit tests and the fuzz targets' corpora
	@tests/run build unit fuzz
e2e: ## real clients against a real gateway
	@tests/run build e2e
asan: ## unit tests and the core of e2e under the sanitizers
	@tests/run asan
stress: ## long runs: nothing lost, nothing left behind
	@tests/run build stress
lint-flags:
	@echo $(STANDARD)
lint: ## everything that reads the source without running it
	@tests/run lint

fuzz: variant-fuzz ## run each fuzz target for FUZZ_SECONDS (30)
	@sh tests/fuzz/run.sh $(FUZZ_SECONDS)
bench bench-profile: all ## compare with sshd
	@tests/bench/run $@
format: ## rewrite the C files in the house's format
	clang-format -i $$(git ls-files '*.c' '*.h')

install: all ## into DESTDIR and PREFIX (/usr/local)
	$(INSTALL) -d $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/bin
	for program in rwsd rwsd-worker rwsd-records; do [ ! -e $(BUILD)/$$program ] || \
		$(INSTALL) -m 755 $(BUILD)/$$program $(DESTDIR)$(PREFIX)/sbin/ || exit 1; done
	[ ! -e $(BUILD)/rws ] || $(INSTALL) -m 755 $(BUILD)/rws $(DESTDIR)$(PREFIX)/bin/
	for page in $(wildcard gateway/*.[1-8] conf/*.[1-8]); do \
		$(INSTALL) -D -m 644 $$page \
		    $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/} || exit 1; done

clean: ## remove what was built
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z][a-z0-9 -]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 24
