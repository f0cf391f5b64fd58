# tradewind: the usual commands. CMake does the work; `make help` lists them.

MAKEFLAGS += --no-print-directory
JOBS  := $(shell nproc 2>/dev/null || echo 2)
BUILD ?= build
CUDA  ?= AUTO
CARDS ?=
CTEST  = ctest --output-on-failure --parallel 2

FUZZ_SECONDS ?= 20
FAULTS_EVERY ?= 1
FLIPS ?= 10000
KILLS ?= 1000
CARD_SIZE ?= 7
PREFIX ?= /usr/local

# Where the tests of faults work: in memory where there is a directory with 1 GB of room, as they write a lot. A container
# has 64 MB of it unless it asks for more, and each process takes ten.
SCRATCH := $(or $(TMPDIR),$(shell [ -w /dev/shm ] && df -Pk /dev/shm | awk 'NR == 2 && $$4 > 1e6 { print "/dev/shm" }'),/tmp)

# Program and plug-in lie together, as the one looks for the other beside itself; the command is a link to them.
HOME_OF = $(DESTDIR)$(PREFIX)/lib/tradewind

SOURCES = find src test bench fuzz -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh'
# TSan leaves out tests without threads, and whole runs of the command that take it minutes: the threads of a run are those
# of test_cli, test_use and test_stream, those of a live session in test_live and test_live_agent. It needs address
# randomisation off on newer kernels.
TSAN_SKIP = test_(arena|characteristics|cli_card|compare|config|err|file|json|kept|live_days|live_trouble|m4|report_cli|rng|rows|rows_fold|term|version)$$
NO_ASLR   = $(shell setarch -R true 2>/dev/null && echo setarch -R)

# $(call build,FOLDER,OPTIONS,TARGET): configures and builds; everything where no target is named. Without CARDS a folder
# keeps the cards that it was made for: those of this machine, unless others were named.
build = cmake -S . -B $(1) $(if $(CARDS),-DTRADEWIND_CUDA_ARCHITECTURES="$(CARDS)") $(2) --log-level=WARNING && cmake --build $(1) --parallel $(JOBS) $(if $(3),--target $(3))

.DEFAULT_GOAL := all
.PHONY: all release install uninstall demo test test-long faults kills flips mutants test-asan test-tsan fuzz test-gpu test-card sanitize-gpu bench bench-gpu format lint layers clean help

all: layers $(BUILD)/.deps-demo ## build the program, build/tradewind, and where nvcc is found the CUDA plug-in for the cards here; CARDS='86-real;75-virtual'
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=OFF -DTRADEWIND_CUDA=$(CUDA))

release: ## the same for every card from Turing on, in build-release; `make install BUILD=build-release` installs it
	@$(MAKE) all BUILD=$(BUILD)-release CUDA=ON CARDS=release

install: all ## put tradewind on the PATH: PREFIX=/usr/local, DESTDIR for packages
	install -d $(HOME_OF) $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/tradewind/examples
	install $(BUILD)/tradewind $(HOME_OF)
	if [ -f $(BUILD)/tradewind-cuda.so ]; then install -m 644 $(BUILD)/tradewind-cuda.so $(HOME_OF); fi
	ln -sf ../lib/tradewind/tradewind $(DESTDIR)$(PREFIX)/bin/tradewind
	install -m 644 examples/*.yaml examples/*.mq5 examples/*.service $(DESTDIR)$(PREFIX)/share/tradewind/examples

uninstall: ## take it away again
	rm -rf $(HOME_OF) $(DESTDIR)$(PREFIX)/share/tradewind $(DESTDIR)$(PREFIX)/bin/tradewind

demo: $(BUILD)/.deps-demo ## build and train on made-up bars
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=OFF -DTRADEWIND_CUDA=OFF)
	$(BUILD)/tradewind train examples/quickstart.yaml

test: layers $(BUILD)/.deps-test ## build and run the tests
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=$(CUDA))
	@cd $(BUILD) && $(CTEST) -LE long

test-long: layers $(BUILD)/.deps-test ## the tests that take longer: runs that are killed, limits, tuning, large graphs
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=$(CUDA))
	@cd $(BUILD) && $(CTEST) -L long

faults: layers $(BUILD)/.deps-test ## every call on a file fails or kills its command, and every allocation up to the first step; FAULTS_EVERY=1
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=$(CUDA))
	@cd $(BUILD) && seq $(JOBS) | TMPDIR=$(SCRATCH) TRADEWIND_FAULTS_EVERY=$(FAULTS_EVERY) xargs -P $(JOBS) -I@ env TRADEWIND_FAULTS_PART=@/$(JOBS) ./test_faults

kills: layers $(BUILD)/.deps-test ## KILLS=1000 commands are killed at random moments, and run again
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=$(CUDA))
	@cd $(BUILD) && TMPDIR=$(SCRATCH) TRADEWIND_KILLS=$(KILLS) ./test_kills

flips: layers $(BUILD)/.deps-test ## FLIPS=10000 single bits of files flip: each is refused, told, or without effect
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=$(CUDA))
	@cd $(BUILD) && TMPDIR=$(SCRATCH) TRADEWIND_FLIPS=$(FLIPS) ./test_flips

mutants: $(BUILD)/.deps-test ## plants the bugs of test/mutants one by one, and tells which no test notices (half an hour); MUTANTS='split_* bar*'
	@tools/mutate.sh $(MUTANTS)

test-asan: layers $(BUILD)/.deps-test ## the tests under AddressSanitizer and UBSan
	@$(call build,$(BUILD)-asan,-DCMAKE_BUILD_TYPE=Debug -DTRADEWIND_CUDA=OFF)
	@cd $(BUILD)-asan && $(CTEST) -LE long

test-tsan: layers $(BUILD)/.deps-test ## the tests that use threads, under ThreadSanitizer
	@$(call build,$(BUILD)-tsan,-DTRADEWIND_SANITIZE=thread -DTRADEWIND_CUDA=OFF)
	@cd $(BUILD)-tsan && TRADEWIND_TEST_SIZE=7 $(NO_ASLR) $(CTEST) -LE long -E '$(TSAN_SKIP)'

fuzz: $(BUILD)/.deps-demo ## each reader on made-up bytes for FUZZ_SECONDS=20 (needs clang); crashes stay in build-fuzz
	@$(call build,$(BUILD)-fuzz,-DCMAKE_C_COMPILER=clang -DTRADEWIND_FUZZ=ON -DTRADEWIND_FUZZ_SECONDS=$(FUZZ_SECONDS) \
	-DTRADEWIND_TESTS=OFF -DTRADEWIND_CUDA=OFF,fuzz)
	@cd $(BUILD)-fuzz && $(CTEST)

test-gpu: layers $(BUILD)/.deps-test ## the tests on the card, in every precision; fails where there is none
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=ON)
	@tools/gpu.sh test $(BUILD)

test-card: layers $(BUILD)/.deps-test ## the kernels without a card: their PTX on a card in software (needs nvcc; minutes)
	@$(call build,$(BUILD)-card,-DTRADEWIND_CUDA=ON -DTRADEWIND_CUDA_ARCHITECTURES=90a-virtual -DTRADEWIND_SOFTWARE_CARD=ON,card_tests)
	@cd $(BUILD)-card && TRADEWIND_TEST_SIZE=$(CARD_SIZE) $(CTEST) -L card

sanitize-gpu: layers $(BUILD)/.deps-test ## the operators' tests on the card under compute-sanitizer
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=ON -DTRADEWIND_CUDA=ON)
	@tools/gpu.sh sanitize $(BUILD)

bench: all ## run the timed cases
	$(BUILD)/tradewind bench

bench-gpu: layers $(BUILD)/.deps-demo ## the timed cases on the card beside PyTorch, as a table in bench/results
	@$(call build,$(BUILD),-DTRADEWIND_TESTS=OFF -DTRADEWIND_CUDA=ON)
	bench/gpu.sh $(BUILD)/tradewind

format: ## lay out the sources
	@$(SOURCES) | xargs clang-format -i

lint: layers $(BUILD)/.deps-test ## check layout and layers, and run clang-tidy where it is installed
	@if command -v clang-format >/dev/null; then $(SOURCES) | xargs clang-format --dry-run -Werror; \
	else echo "lint: clang-format is not installed, skipped"; fi
	@if command -v clang-tidy >/dev/null; then cmake -S . -B $(BUILD) -DTRADEWIND_TESTS=ON --log-level=WARNING && \
	find src -name '*.c' | xargs -P $(JOBS) -n 2 clang-tidy -p $(BUILD) --quiet; \
	else echo "lint: clang-tidy is not installed, skipped"; fi

layers:
	@tools/layers.sh

# What is missing is looked for once per build folder.
$(BUILD)/.deps-%: tools/deps.sh
	@tools/deps.sh $*
	@mkdir -p $(BUILD) && touch $@

clean: ## remove everything built
	rm -rf build build-*

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14
