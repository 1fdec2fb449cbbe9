// Threads that wait for the GIL when the interpreter ends.
#include "gil.hpp"

#include <atomic>
#include <chrono>
#include <thread>

namespace klsa {
namespace {

// Threads that ask for the GIL, and the one that ends the interpreter.
std::atomic<int> returning{0};
std::atomic<bool> is_ending{false};
std::thread::id ending_thread;

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
    returning++;
    if (is_ending && std::this_thread::get_id() != ending_thread) {
        returning--;
        for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    PyEval_RestoreThread(state_);
    returning--;
}

void WithoutGil::end() {
    ending_thread = std::this_thread::get_id();
    is_ending = true;
    PyThreadState* state = PyEval_SaveThread();
    while (returning) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(state);
}

}  // namespace klsa
