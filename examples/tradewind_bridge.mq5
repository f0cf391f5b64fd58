//+------------------------------------------------------------------+
//| tradewind_bridge.mq5                                             |
//| Exchanges closed bars and target positions with tradewind through|
//| files in the terminals' common folder. The protocol is           |
//| doc/live_metatrader.md. It needs no DLL and no network.          |
//|                                                                  |
//| It trades only where Trade is true, and real accounts only where |
//| AllowRealAccount is true as well. Its own limits hold whatever   |
//| the other side asks for.                                         |
//+------------------------------------------------------------------+
#property copyright "tradewind, MIT licence"
#property version   "1.00"
#property strict

#include <Trade\Trade.mqh>

input string Folder            = "tradewind"; // folder in Common\Files
input string Symbols           = "";          // XAUUSD,EURUSD; empty: the chart's
input string Frames            = "M5,H1";     // M1 M5 M15 M30 H1 H4 D1
input int    History           = 5000;        // closed bars in the first document of each series; 10000 at most
input int    Repeat            = 50;          // closed bars in every later one
input bool   Trade             = false;       // carry out target positions
input bool   AllowRealAccount  = false;       // also in accounts that are not demo
input double MaxLots           = 0.10;        // of one symbol, either side
input double MaxDayLossPercent = 3.0;         // of the balance at the day's start: flat until the next day
input int    MaxOrdersAMinute  = 10;
input int    MaxSilence        = 60;          // seconds without news from tradewind: nothing is opened
input bool   CloseOnSilence    = false;       // and what was opened is closed
input int    Deviation         = 20;          // points of slippage that an order may have
input long   Magic             = 7421001;     // marks this advisor's positions

struct Series
{
   string          symbol;
   ENUM_TIMEFRAMES frame;
   datetime        newest;   // open of the newest closed bar that was written
   bool            written;  // the history was
};

struct Target
{
   long   id;
   string symbol;
   double lots, stop, take;
   long   decided, until;
};

Series   series[];
CTrade   trade;
long     epoch, seq;
uint     table[256];
long     targets_epoch = 0, targets_seq = 0, written_at = 0;
Target   targets[];
string   done_symbol[];      // ids that were carried out or refused, by symbol
long     done_id[];
long     applied = 0, refused = 0;
string   refused_why = "";
datetime order_time[];
int      day = -1;
double   day_balance = 0;
bool     day_over = false;

//--- documents

void MakeTable()
{
   for(uint i = 0; i < 256; i++)
   {
      uint c = i;
      for(int k = 0; k < 8; k++)
         c = (c & 1) ? (0xEDB88320 ^ (c >> 1)) : (c >> 1);
      table[i] = c;
   }
}

uint Sum(const uchar &bytes[], int count)
{
   uint c = 0xFFFFFFFF;
   for(int i = 0; i < count; i++)
      c = table[(c ^ bytes[i]) & 0xFF] ^ (c >> 8);
   return c ^ 0xFFFFFFFF;
}

string Head(string kind)
{
   seq++;
   return "tradewind-" + kind + " 1\nepoch " + IntegerToString(epoch) + "\nseq " + IntegerToString(seq) + "\n";
}

// Writes a document beside the old one and renames it. Where the reader has the old one open the rename can fail: it is
// tried again with the next document.
bool Replace(string name, string text)
{
   uchar bytes[];
   int n = StringToCharArray(text, bytes, 0, StringLen(text), CP_UTF8);
   text += StringFormat("crc %08x\n", Sum(bytes, n));
   n = StringToCharArray(text, bytes, 0, StringLen(text), CP_UTF8);
   string temp = Folder + "\\" + name + ".new";
   int file = FileOpen(temp, FILE_WRITE | FILE_BIN | FILE_COMMON);
   if(file == INVALID_HANDLE)
      return false;
   uint put = FileWriteArray(file, bytes, 0, n);
   FileClose(file);
   return put == (uint)n && FileMove(temp, FILE_COMMON, Folder + "\\" + name, FILE_COMMON | FILE_REWRITE);
}

// Reads a document; false where there is none, or its sum is wrong.
bool Read(string name, string &text)
{
   uchar bytes[];
   int file = FileOpen(Folder + "\\" + name, FILE_READ | FILE_BIN | FILE_COMMON | FILE_SHARE_READ | FILE_SHARE_WRITE);
   if(file == INVALID_HANDLE)
      return false;
   uint n = FileReadArray(file, bytes);
   FileClose(file);
   if(n < 14 || n > 1048576)
      return false;
   int at = (int)n - 13; // "crc 0123abcd" and its newline
   string end = CharArrayToString(bytes, at, 12, CP_UTF8);
   if(bytes[n - 1] != '\n' || end != StringFormat("crc %08x", Sum(bytes, at)))
      return false;
   text = CharArrayToString(bytes, 0, at, CP_UTF8);
   return true;
}

//--- bars out

string FileName(string symbol)
{
   string name = symbol;
   for(int i = 0; i < StringLen(name); i++)
   {
      ushort c = StringGetCharacter(name, i);
      bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
      if(!plain)
         StringSetCharacter(name, i, '-');
   }
   return name;
}

// Writes the closed bars of a series where there is a new one.
void WriteBars(Series &s)
{
   MqlRates rates[];
   datetime newest = iTime(s.symbol, s.frame, 1);
   if(newest == 0 || (s.written && newest == s.newest))
      return;
   int most = MathMin(History, 10000), wanted = s.written ? Repeat : most;
   if(s.written)
   {
      int behind = iBarShift(s.symbol, s.frame, s.newest) + 1; // after an interruption more have closed
      if(behind > wanted)
         wanted = MathMin(behind, most);
   }
   int n = CopyRates(s.symbol, s.frame, 1, wanted, rates); // from the newest closed bar back; time rises
   if(n <= 0 || rates[n - 1].time != newest)
      return;
   int digits = (int)SymbolInfoInteger(s.symbol, SYMBOL_DIGITS);
   string text = Head("bars") + "symbol " + s.symbol + "\nspan " + IntegerToString(PeriodSeconds(s.frame)) + "\nrows " +
                 IntegerToString(n) + "\ntime,open,high,low,close,tick_volume,spread\n";
   for(int i = 0; i < n; i++)
      text += IntegerToString((long)rates[i].time) + "," + DoubleToString(rates[i].open, digits) + "," +
              DoubleToString(rates[i].high, digits) + "," + DoubleToString(rates[i].low, digits) + "," +
              DoubleToString(rates[i].close, digits) + "," + IntegerToString(rates[i].tick_volume) + "," +
              IntegerToString(rates[i].spread) + "\n";
   string frame = StringSubstr(EnumToString(s.frame), 7); // PERIOD_M5
   if(!Replace("bars_" + FileName(s.symbol) + "_" + frame + ".txt", text))
      return;
   s.newest = newest;
   s.written = true;
}

bool IsDemo()
{
   return AccountInfoInteger(ACCOUNT_TRADE_MODE) == ACCOUNT_TRADE_MODE_DEMO;
}

bool MayTrade()
{
   return Trade && (IsDemo() || AllowRealAccount) && TerminalInfoInteger(TERMINAL_TRADE_ALLOWED) &&
          MQLInfoInteger(MQL_TRADE_ALLOWED);
}

void WriteStatus()
{
   string text = Head("advisor");
   // Seconds, to the nearest quarter of an hour: the two clocks are not read at one moment.
   long clock = (long)MathRound((double)(TimeTradeServer() - TimeGMT()) / 900.0) * 900;
   text += "clock " + IntegerToString(clock) + "\naccount " + (IsDemo() ? "demo" : "real") + "\ntrade " +
           (MayTrade() && !day_over ? "yes" : "no") + "\n";
   for(int i = 0; i < PositionsTotal(); i++)
   {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0 || PositionGetInteger(POSITION_MAGIC) != Magic)
         continue;
      double side = PositionGetInteger(POSITION_TYPE) == POSITION_TYPE_BUY ? 1 : -1;
      text += "position " + PositionGetString(POSITION_SYMBOL) + " " +
              DoubleToString(side * PositionGetDouble(POSITION_VOLUME), 2) + " " +
              DoubleToString(PositionGetDouble(POSITION_PRICE_OPEN), 8) + "\n";
   }
   text += "applied " + IntegerToString(applied) + "\n";
   if(refused > 0)
      text += "refused " + IntegerToString(refused) + " " + refused_why + "\n";
   Replace("advisor.txt", text);
}

//--- target positions in

void ReadTargets()
{
   string text, lines[], words[];
   if(!Read("targets.txt", text))
      return;
   int n = StringSplit(text, '\n', lines);
   if(n < 4 || lines[0] != "tradewind-targets 1")
      return;
   long new_epoch = StringToInteger(StringSubstr(lines[1], 6)), new_seq = StringToInteger(StringSubstr(lines[2], 4));
   if(new_epoch < targets_epoch || (new_epoch == targets_epoch && new_seq <= targets_seq))
      return; // late or repeated
   targets_epoch = new_epoch;
   targets_seq = new_seq;
   ArrayResize(targets, 0);
   for(int i = 3; i < n; i++)
   {
      int count = StringSplit(lines[i], ' ', words);
      if(count == 2 && words[0] == "written")
         written_at = StringToInteger(words[1]);
      if(count != 8 || words[0] != "target")
         continue;
      Target t;
      t.id = StringToInteger(words[1]);
      t.symbol = words[2];
      t.lots = StringToDouble(words[3]);
      t.stop = StringToDouble(words[4]);
      t.take = StringToDouble(words[5]);
      t.decided = StringToInteger(words[6]);
      t.until = StringToInteger(words[7]);
      int at = ArraySize(targets);
      ArrayResize(targets, at + 1);
      targets[at] = t;
   }
}

// This advisor's position in a symbol, in lots. Others are left alone.
double Held(string symbol)
{
   double lots = 0;
   for(int i = 0; i < PositionsTotal(); i++)
   {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0 || PositionGetInteger(POSITION_MAGIC) != Magic || PositionGetString(POSITION_SYMBOL) != symbol)
         continue;
      lots += (PositionGetInteger(POSITION_TYPE) == POSITION_TYPE_BUY ? 1 : -1) * PositionGetDouble(POSITION_VOLUME);
   }
   return lots;
}

bool CloseAll(string symbol)
{
   bool ok = true;
   for(int i = PositionsTotal() - 1; i >= 0; i--)
   {
      ulong ticket = PositionGetTicket(i);
      if(ticket == 0 || PositionGetInteger(POSITION_MAGIC) != Magic)
         continue;
      if(symbol != "" && PositionGetString(POSITION_SYMBOL) != symbol)
         continue;
      ok = trade.PositionClose(ticket) && ok;
   }
   return ok;
}

int DoneAt(string symbol)
{
   for(int i = 0; i < ArraySize(done_symbol); i++)
      if(done_symbol[i] == symbol)
         return i;
   int n = ArraySize(done_symbol);
   ArrayResize(done_symbol, n + 1);
   ArrayResize(done_id, n + 1);
   done_symbol[n] = symbol;
   done_id[n] = 0;
   return n;
}

// The newest id outlives a restart of the terminal, so that no target is carried out twice.
string Memory(string symbol)
{
   return StringSubstr("tw_" + IntegerToString(Magic) + "_" + symbol, 0, 62);
}

void Remember(Target &t, bool ok, string why)
{
   done_id[DoneAt(t.symbol)] = t.id;
   GlobalVariableSet(Memory(t.symbol), (double)t.id);
   if(ok && t.id > applied)
      applied = t.id;
   if(!ok && t.id > refused)
   {
      refused = t.id;
      refused_why = t.symbol + " " + why;
   }
}

bool OrdersLeft()
{
   int kept = 0, n = ArraySize(order_time);
   for(int i = 0; i < n; i++)
      if(TimeLocal() - order_time[i] < 60)
         order_time[kept++] = order_time[i];
   ArrayResize(order_time, kept);
   return kept < MaxOrdersAMinute;
}

void CountOrder()
{
   int n = ArraySize(order_time);
   ArrayResize(order_time, n + 1);
   order_time[n] = TimeLocal();
}

// Cuts lots to what the symbol and the limits allow.
double Cut(string symbol, double lots)
{
   double step = SymbolInfoDouble(symbol, SYMBOL_VOLUME_STEP), least = SymbolInfoDouble(symbol, SYMBOL_VOLUME_MIN);
   double size = MathMin(MathAbs(lots), MathMin(MaxLots, SymbolInfoDouble(symbol, SYMBOL_VOLUME_MAX)));
   if(step > 0)
      size = MathFloor(size / step + 1e-9) * step;
   if(size < least)
      size = 0;
   return lots < 0 ? -size : size;
}

void CarryOut(Target &t)
{
   double held = Held(t.symbol), wanted = day_over ? 0 : Cut(t.symbol, t.lots);
   if(t.id <= done_id[DoneAt(t.symbol)] && !day_over)
      return;
   if(MathAbs(wanted - held) < 1e-8)
   {
      if(!day_over)
         Remember(t, true, "");
      return;
   }
   bool opens = wanted != 0;
   if(opens && t.until > 0 && (long)TimeGMT() > t.until)
   {
      Remember(t, false, "too late");
      return;
   }
   if(opens && !OrdersLeft())
      return; // in a minute
   // A hedging account may hold several positions: what is to be smaller or on the other side is closed first.
   bool same_side = wanted * held > 0 && MathAbs(wanted) > MathAbs(held);
   if(held != 0 && !same_side)
   {
      CountOrder();
      if(!CloseAll(t.symbol))
         return; // tried again with the next tick
      held = 0;
   }
   double more = wanted - held;
   if(MathAbs(more) > 1e-8)
   {
      CountOrder();
      bool ok = more > 0 ? trade.Buy(more, t.symbol, 0, t.stop, t.take) : trade.Sell(-more, t.symbol, 0, t.stop, t.take);
      uint code = trade.ResultRetcode();
      ok = ok && (code == TRADE_RETCODE_DONE || code == TRADE_RETCODE_PLACED || code == TRADE_RETCODE_DONE_PARTIAL);
      Remember(t, ok, trade.ResultRetcodeDescription());
      return;
   }
   if(!day_over)
      Remember(t, true, "");
}

void JudgeDay()
{
   MqlDateTime now;
   TimeToStruct(TimeTradeServer(), now);
   if(now.day_of_year != day)
   {
      day = now.day_of_year;
      day_balance = AccountInfoDouble(ACCOUNT_BALANCE);
      day_over = false;
   }
   if(!day_over && day_balance > 0 &&
      AccountInfoDouble(ACCOUNT_EQUITY) <= day_balance * (1 - MaxDayLossPercent / 100))
   {
      day_over = true;
      Print("tradewind_bridge: the day's largest loss was reached: flat until tomorrow");
   }
}

void Obey()
{
   JudgeDay();
   ReadTargets();
   if(!MayTrade())
      return;
   bool silent = (long)TimeGMT() - written_at > MaxSilence;
   if(silent && !day_over)
   {
      if(CloseOnSilence && written_at > 0)
         CloseAll("");
      return;
   }
   for(int i = 0; i < ArraySize(targets); i++)
      CarryOut(targets[i]);
}

//--- events

ENUM_TIMEFRAMES FrameOf(string word)
{
   ENUM_TIMEFRAMES all[] = {PERIOD_M1, PERIOD_M5, PERIOD_M15, PERIOD_M30, PERIOD_H1, PERIOD_H4, PERIOD_D1};
   for(int i = 0; i < ArraySize(all); i++)
      if(StringSubstr(EnumToString(all[i]), 7) == word)
         return all[i];
   return PERIOD_CURRENT;
}

int OnInit()
{
   string symbol[], frame[];
   string all = Symbols == "" ? _Symbol : Symbols;
   int n = StringSplit(all, ',', symbol), m = StringSplit(Frames, ',', frame);
   MakeTable();
   epoch = (long)TimeGMT() * 1000 + (long)(GetTickCount64() % 1000);
   seq = 0;
   ArrayResize(series, 0);
   for(int i = 0; i < n; i++)
      for(int k = 0; k < m; k++)
      {
         Series s;
         s.symbol = symbol[i];
         s.frame = FrameOf(frame[k]);
         s.newest = 0;
         s.written = false;
         if(s.frame == PERIOD_CURRENT || !SymbolSelect(s.symbol, true))
         {
            Print("tradewind_bridge: ", symbol[i], " ", frame[k], " is not known");
            return INIT_PARAMETERS_INCORRECT;
         }
         int at = ArraySize(series);
         ArrayResize(series, at + 1);
         series[at] = s;
         int d = DoneAt(s.symbol);
         if(GlobalVariableCheck(Memory(s.symbol)))
            done_id[d] = (long)GlobalVariableGet(Memory(s.symbol));
      }
   FolderCreate(Folder, FILE_COMMON);
   trade.SetExpertMagicNumber(Magic);
   trade.SetDeviationInPoints(Deviation);
   if(Trade && !IsDemo() && !AllowRealAccount)
      Print("tradewind_bridge: this is no demo account: target positions are not carried out");
   EventSetMillisecondTimer(100);
   return INIT_SUCCEEDED;
}

void OnDeinit(const int reason)
{
   EventKillTimer();
}

void Exchange()
{
   static ulong last = 0;
   long before = seq;
   for(int i = 0; i < ArraySize(series); i++)
      WriteBars(series[i]);
   Obey();
   if(seq != before || GetTickCount64() - last >= 1000)
   {
      WriteStatus();
      last = GetTickCount64();
   }
}

void OnTimer() { Exchange(); }
void OnTick() { Exchange(); }
//+------------------------------------------------------------------+
